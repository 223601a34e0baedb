#include "collage/backend/machine_code.h"

#include <elf.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <unordered_map>
#include <vector>

namespace collage::artifact {

struct SymbolAddresses {
  std::unordered_map<std::string, void*> by_name;
};

/// Lays out the sections of one object, then applies its relocations. See the x86-64 psABI, chapter 4.
class Linker {
 public:
  Linker(std::string_view object, const MachineCode::Resolver& resolve) : object_(object), resolve_(resolve) {}

  Result<std::unique_ptr<MachineCode>> Run() {
    COLLAGE_TRY_STATUS(ReadSections());
    COLLAGE_TRY_STATUS(ReadSymbols());
    COLLAGE_TRY_STATUS(Place());
    COLLAGE_TRY_STATUS(ResolveSymbols());
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_RELA && section.sh_info < sections_.size() && Placed(section.sh_info))
        COLLAGE_TRY_STATUS(Relocate(section));
    }
    if (::mprotect(code_->memory_, writable_begin_, PROT_READ | PROT_EXEC) != 0)
      return Fail("machine code: memory cannot be made executable");
    return std::move(code_);
  }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kStubBytes = 16;  // jmp *[rip + 2]; two bytes of padding; the address

  static tl::unexpected<Error> Malformed(const std::string& what) { return Fail("machine code: " + what); }

  // A copy of `count` records at a position of the object; it need not be aligned there.
  template <class Record>
  Result<std::vector<Record>> Records(uint64_t offset, uint64_t bytes) const {
    if (offset > object_.size() || bytes > object_.size() - offset) return Malformed("a table lies outside of the object");
    std::vector<Record> records(bytes / sizeof(Record));
    std::memcpy(records.data(), object_.data() + offset, records.size() * sizeof(Record));
    return records;
  }

  Status ReadSections() {
    const Elf64_Ehdr header = [&] {
      Elf64_Ehdr h{};
      if (object_.size() >= sizeof h) std::memcpy(&h, object_.data(), sizeof h);
      return h;
    }();
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
      return Malformed("not a 64-bit ELF object");
    if (header.e_type != ET_REL || header.e_machine != EM_X86_64) return Malformed("not a relocatable x86-64 object");
    sections_ = COLLAGE_TRY(Records<Elf64_Shdr>(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)));
    return {};
  }

  Status ReadSymbols() {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB) continue;
      if (section.sh_link >= sections_.size()) return Malformed("a symbol table without names");
      symbols_ = COLLAGE_TRY(Records<Elf64_Sym>(section.sh_offset, section.sh_size));
      const Elf64_Shdr& strings = sections_[section.sh_link];
      const std::vector<char> names = COLLAGE_TRY(Records<char>(strings.sh_offset, strings.sh_size));
      for (const Elf64_Sym& symbol : symbols_) {
        if (symbol.st_name >= names.size()) {
          names_.emplace_back();
          continue;
        }
        const char* begin = names.data() + symbol.st_name;
        names_.emplace_back(begin, ::strnlen(begin, names.size() - symbol.st_name));
      }
      return {};
    }
    return Malformed("no symbol table");
  }

  [[nodiscard]] bool Placed(size_t section) const { return place_[section] != kNowhere; }
  [[nodiscard]] std::byte* AddressOf(size_t section) const { return code_->memory_ + place_[section]; }

  // Code and constants first (made executable), then stubs for functions outside, then the slots and writable data.
  Status Place() {
    place_.assign(sections_.size(), kNowhere);
    size_t end = 0;
    COLLAGE_TRY_STATUS(PlaceSections(false, end));
    stubs_ = (end + kStubBytes - 1) / kStubBytes * kStubBytes;
    end = stubs_ + symbols_.size() * kStubBytes;
    writable_begin_ = (end + kPage - 1) / kPage * kPage;
    slots_ = writable_begin_;
    end = slots_ + symbols_.size() * sizeof(void*);
    COLLAGE_TRY_STATUS(PlaceSections(true, end));
    code_ = std::unique_ptr<MachineCode>(new MachineCode());
    code_->bytes_ = (end + kPage - 1) / kPage * kPage;
    void* memory = ::mmap(nullptr, code_->bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Malformed("no memory");
    code_->memory_ = static_cast<std::byte*>(memory);
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (!Placed(i) || sections_[i].sh_type == SHT_NOBITS) continue;
      const std::vector<std::byte> content = COLLAGE_TRY(Records<std::byte>(sections_[i].sh_offset, sections_[i].sh_size));
      std::memcpy(AddressOf(i), content.data(), content.size());
    }
    return {};
  }

  Status PlaceSections(bool writable, size_t& end) {
    constexpr uint64_t kLargest = uint64_t{1} << 30;  // relocations reach 2 GiB
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& section = sections_[i];
      // Unwind tables are left out: no exception passes through generated code.
      if (!(section.sh_flags & SHF_ALLOC) || section.sh_type == SHT_X86_64_UNWIND || section.sh_size == 0) continue;
      if (((section.sh_flags & SHF_WRITE) != 0) != writable) continue;
      if (section.sh_flags & SHF_TLS) return Malformed("thread-local data");
      const uint64_t alignment = std::max<uint64_t>(section.sh_addralign, 1);
      if (section.sh_size > kLargest || alignment > kPage || end > kLargest) return Malformed("a section is too large");
      end = (end + alignment - 1) / alignment * alignment;
      place_[i] = end;
      end += section.sh_size;
    }
    return {};
  }

  Status ResolveSymbols() {
    code_->symbols_ = std::make_unique<SymbolAddresses>();
    addresses_.assign(symbols_.size(), nullptr);
    for (size_t i = 1; i < symbols_.size(); ++i) {
      const Elf64_Sym& symbol = symbols_[i];
      if (symbol.st_shndx == SHN_UNDEF) {
        addresses_[i] = resolve_(names_[i]);
        if (!addresses_[i]) return Malformed("unknown symbol " + names_[i]);
      } else if (symbol.st_shndx == SHN_ABS) {
        addresses_[i] = reinterpret_cast<void*>(symbol.st_value);  // NOLINT(performance-no-int-to-ptr): an absolute address
      } else if (symbol.st_shndx < sections_.size() && Placed(symbol.st_shndx)) {
        if (symbol.st_value > sections_[symbol.st_shndx].sh_size) return Malformed("a symbol lies outside of its section");
        addresses_[i] = AddressOf(symbol.st_shndx) + symbol.st_value;
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) code_->symbols_->by_name[names_[i]] = addresses_[i];
      }
    }
    return {};
  }

  // A jump to a function that may be further away than a relative call reaches.
  std::byte* Stub(size_t symbol) {
    std::byte* stub = code_->memory_ + stubs_ + symbol * kStubBytes;
    constexpr unsigned char kJump[] = {0xff, 0x25, 0x02, 0x00, 0x00, 0x00, 0x90, 0x90};
    std::memcpy(stub, kJump, sizeof kJump);
    std::memcpy(stub + sizeof kJump, &addresses_[symbol], sizeof(void*));
    return stub;
  }

  std::byte* Slot(size_t symbol) {
    std::byte* slot = code_->memory_ + slots_ + symbol * sizeof(void*);
    std::memcpy(slot, &addresses_[symbol], sizeof(void*));
    return slot;
  }

  Status Relocate(const Elf64_Shdr& table) {
    const std::vector<Elf64_Rela> entries = COLLAGE_TRY(Records<Elf64_Rela>(table.sh_offset, table.sh_size));
    const uint64_t size = sections_[table.sh_info].sh_size;
    for (const Elf64_Rela& entry : entries) {
      const size_t symbol = ELF64_R_SYM(entry.r_info);
      const uint32_t type = ELF64_R_TYPE(entry.r_info);
      const uint64_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
      if (symbol >= symbols_.size() || size < width || entry.r_offset > size - width)
        return Malformed("a relocation lies outside of its section");
      COLLAGE_TRY_STATUS(Apply(type, AddressOf(table.sh_info) + entry.r_offset, symbol, entry.r_addend));
    }
    return {};
  }

  Status Apply(uint32_t type, std::byte* at, size_t symbol, int64_t addend) {
    if (!addresses_[symbol]) return Malformed("a relocation against " + names_[symbol] + ", which has no place");
    const auto target = reinterpret_cast<int64_t>(addresses_[symbol]);
    const auto here = reinterpret_cast<int64_t>(at);
    switch (type) {
      case R_X86_64_64: {
        const int64_t value = target + addend;
        std::memcpy(at, &value, sizeof value);
        return {};
      }
      case R_X86_64_PC64: {
        const int64_t value = target + addend - here;
        std::memcpy(at, &value, sizeof value);
        return {};
      }
      case R_X86_64_PC32:
      case R_X86_64_PLT32: {
        const bool outside = symbols_[symbol].st_shndx == SHN_UNDEF;
        const int64_t base = outside ? reinterpret_cast<int64_t>(Stub(symbol)) : target;
        return Store32(at, base + addend - here);
      }
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX:
        return Store32(at, reinterpret_cast<int64_t>(Slot(symbol)) + addend - here);
      default:
        return Malformed("relocation type " + std::to_string(type));
    }
  }

  static Status Store32(std::byte* at, int64_t value) {
    const auto narrow = static_cast<int32_t>(value);
    if (narrow != value) return Malformed("a relocation out of reach");
    std::memcpy(at, &narrow, sizeof narrow);
    return {};
  }

  static constexpr size_t kNowhere = static_cast<size_t>(-1);
  std::string_view object_;
  const MachineCode::Resolver& resolve_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::vector<std::string> names_;
  std::vector<void*> addresses_;
  std::vector<size_t> place_;
  size_t stubs_ = 0;
  size_t slots_ = 0;
  size_t writable_begin_ = 0;
  std::unique_ptr<MachineCode> code_;
};

Result<std::unique_ptr<MachineCode>> MachineCode::Link(std::string_view object, const Resolver& resolve) {
  return Linker(object, resolve).Run();
}

MachineCode::~MachineCode() {
  if (memory_) ::munmap(memory_, bytes_);
}

void* MachineCode::Find(const std::string& name) const {
  const auto found = symbols_->by_name.find(name);
  return found == symbols_->by_name.end() ? nullptr : found->second;
}

}  // namespace collage::artifact
