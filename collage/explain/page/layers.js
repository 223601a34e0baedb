// Layered drawing, top to bottom (Sugiyama, Tagawa and Toda 1981): layers by longest paths, edges over several layers through points of
// their own, orders by barycentres, then places by least squares with least distances.

const LAYER_GAP = 30;
const BOX_GAP = 26;
const POINT_WIDTH = 8;
const ORDER_SWEEPS = 8;
const PLACE_SWEEPS = 10;

/**
 * Gives each box {id, width, height} an x and y (of its upper left corner).
 * @param boxes in topological order @param edges [from id, to id], each once
 * @returns {{width: number, height: number, routes: Array<{from, to, points: Array<[number, number]>}>}}
 */
function layOut(boxes, edges) {
  const graph = layered(boxes, edges);
  orderLayers(graph.layers);
  placeInLayers(graph.layers);
  return toCoordinates(graph, edges);
}

function layered(boxes, edges) {
  const nodes = boxes.map((box) => ({ box, layer: 0, above: [], below: [], width: box.width, x: 0 }));
  const byId = new Map(nodes.map((node) => [node.box.id, node]));
  for (const [from, to] of edges) {
    byId.get(from).below.push(byId.get(to));
    byId.get(to).above.push(byId.get(from));
  }
  for (const node of nodes) for (const one of node.above) node.layer = Math.max(node.layer, one.layer + 1);
  // What reads nothing stands right above its first reader.
  for (const node of nodes) {
    if (!node.above.length && node.below.length) node.layer = Math.min(...node.below.map((one) => one.layer)) - 1;
  }
  const layers = [];
  const put = (node) => (layers[node.layer] = layers[node.layer] || []).push(node);
  nodes.forEach(put);
  for (const node of nodes) {
    node.above = [];
    node.below = [];
  }
  const chains = edges.map(([from, to]) => {
    const chain = [byId.get(from)];
    for (let layer = byId.get(from).layer + 1; layer < byId.get(to).layer; ++layer) {
      const point = { box: null, layer, above: [], below: [], width: POINT_WIDTH, x: 0 };
      put(point);
      chain.push(point);
    }
    chain.push(byId.get(to));
    for (let i = 1; i < chain.length; ++i) {
      chain[i - 1].below.push(chain[i]);
      chain[i].above.push(chain[i - 1]);
    }
    return chain;
  });
  return { layers, chains, byId };
}

function orderLayers(layers) {
  const number = (layer) => layer.forEach((node, i) => (node.order = i));
  layers.forEach(number);
  const sort = (layer, side) => {
    for (const node of layer) {
      const near = node[side];
      node.weight = near.length ? near.reduce((sum, one) => sum + one.order, 0) / near.length : node.order;
    }
    layer.sort((a, b) => a.weight - b.weight || a.order - b.order);
    number(layer);
  };
  let best = layers.map((layer) => [...layer]);
  let fewest = crossings(layers);
  for (let sweep = 0; sweep < ORDER_SWEEPS && fewest > 0; ++sweep) {
    if (sweep % 2) for (let i = layers.length - 2; i >= 0; --i) sort(layers[i], "below");
    else for (let i = 1; i < layers.length; ++i) sort(layers[i], "above");
    const count = crossings(layers);
    if (count >= fewest) continue;
    fewest = count;
    best = layers.map((layer) => [...layer]);
  }
  best.forEach((layer, i) => {
    layers[i] = layer;
    number(layer);
  });
}

/** By counting inversions in a binary indexed tree, layer by layer. */
function crossings(layers) {
  let count = 0;
  for (let i = 1; i < layers.length; ++i) {
    const tree = new Array(layers[i].length + 1).fill(0);
    let seen = 0;
    for (const node of layers[i - 1]) {
      const ends = node.below.map((one) => one.order).sort((a, b) => a - b);
      for (const end of ends) {
        let before = 0;
        for (let at = end + 1; at > 0; at -= at & -at) before += tree[at];
        count += seen - before;
      }
      for (const end of ends) {
        for (let at = end + 1; at < tree.length; at += at & -at) ++tree[at];
        ++seen;
      }
    }
  }
  return count;
}

/** Nodes as near as can be to where they want to be, in their order and with least distances: isotonic regression. */
function settle(layer, wanted, weight) {
  const offset = [0];
  for (let i = 1; i < layer.length; ++i) offset[i] = offset[i - 1] + (layer[i - 1].width + layer[i].width) / 2 + BOX_GAP;
  const pools = [];
  layer.forEach((node, i) => {
    let pool = { sum: (wanted(node) - offset[i]) * weight(node), weight: weight(node), first: i };
    while (pools.length && pools[pools.length - 1].sum / pools[pools.length - 1].weight > pool.sum / pool.weight) {
      const last = pools.pop();
      pool = { sum: last.sum + pool.sum, weight: last.weight + pool.weight, first: last.first };
    }
    pools.push(pool);
  });
  pools.forEach((pool, k) => {
    const end = k + 1 < pools.length ? pools[k + 1].first : layer.length;
    for (let i = pool.first; i < end; ++i) layer[i].x = pool.sum / pool.weight + offset[i];
  });
}

function placeInLayers(layers) {
  for (const layer of layers) settle(layer, () => 0, () => 1);
  const mean = (near, x) => (near.length ? near.reduce((sum, one) => sum + one.x, 0) / near.length : x);
  // Points of long edges count more, which makes those straight.
  const weight = (node) => (node.box ? 1 : 4);
  for (let sweep = 0; sweep < PLACE_SWEEPS; ++sweep) {
    for (let i = 1; i < layers.length; ++i) settle(layers[i], (node) => mean(node.above, node.x), weight);
    for (let i = layers.length - 2; i >= 0; --i) settle(layers[i], (node) => mean(node.below, node.x), weight);
    for (const layer of layers) settle(layer, (node) => mean([...node.above, ...node.below], node.x), weight);
  }
}

function toCoordinates(graph, edges) {
  const left = Math.min(...graph.layers.flat().map((node) => node.x - node.width / 2));
  const right = Math.max(...graph.layers.flat().map((node) => node.x + node.width / 2));
  let y = 0;
  for (const layer of graph.layers) {
    const height = Math.max(...layer.map((node) => (node.box ? node.box.height : 0)));
    for (const node of layer) {
      node.x -= left;
      node.top = y;
      node.bottom = y + height;
      if (!node.box) continue;
      node.box.x = node.x - node.width / 2;
      node.box.y = y;
      node.bottom = y + node.box.height;
    }
    y += height + LAYER_GAP;
  }
  const routes = graph.chains.map((chain, i) => ({ from: edges[i][0], to: edges[i][1], points: pointsOf(chain) }));
  return { width: right - left, height: y - LAYER_GAP, routes };
}

function pointsOf(chain) {
  const points = [[chain[0].x, chain[0].bottom]];
  for (const node of chain.slice(1, -1)) points.push([node.x, node.top], [node.x, node.bottom]);
  const last = chain[chain.length - 1];
  points.push([last.x, last.top]);
  return points;
}
