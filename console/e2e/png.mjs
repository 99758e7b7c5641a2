// Pictures as small as they can be told: a page has few colours, so 256 of them are enough, each pixel one byte.
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGN = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc32(body) >>> 0, body.length + 4);
  return out;
}

/** The pixels of a picture as a browser takes it: eight bits a channel, not interlaced. */
function read(png) {
  let header;
  const parts = [];
  for (let at = 8; at < png.length; ) {
    const size = png.readUInt32BE(at);
    const name = png.toString("latin1", at + 4, at + 8);
    const data = png.subarray(at + 8, at + 8 + size);
    if (name === "IHDR") header = { width: data.readUInt32BE(0), height: data.readUInt32BE(4), depth: data[8], kind: data[9], laced: data[12] };
    if (name === "IDAT") parts.push(data);
    at += size + 12;
  }
  const { width, height, depth, kind, laced } = header;
  const step = { 2: 3, 6: 4 }[kind];
  if (depth !== 8 || laced || !step) throw new Error("this is not a picture of a browser");
  const raw = inflateSync(Buffer.concat(parts));
  const line = width * step;
  const pixels = Buffer.alloc(line * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (line + 1)];
    for (let x = 0; x < line; x += 1) {
      const left = x >= step ? pixels[y * line + x - step] : 0;
      const up = y ? pixels[(y - 1) * line + x] : 0;
      const corner = y && x >= step ? pixels[(y - 1) * line + x - step] : 0;
      const by = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
      const guess = [0, left, up, (left + up) >> 1, by[0] <= by[1] && by[0] <= by[2] ? left : by[1] <= by[2] ? up : corner][filter];
      pixels[y * line + x] = raw[y * (line + 1) + 1 + x] + guess;
    }
  }
  return { width, height, step, pixels };
}

/** The same picture with the colours it has most of; those left out become the nearest. */
export function small(png) {
  const { width, height, step, pixels } = read(png);
  const count = new Map();
  const colour = (at) => (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
  for (let at = 0; at < pixels.length; at += step) count.set(colour(at), (count.get(colour(at)) ?? 0) + 1);
  const palette = [];
  const apart = (a, b) => ((a >> 16) - (b >> 16)) ** 2 + (((a >> 8) & 255) - ((b >> 8) & 255)) ** 2 + ((a & 255) - (b & 255)) ** 2;
  // A colour that is hardly another one leaves its place to the next.
  for (const near of [48, 12, 0]) {
    if (palette.length >= 256) break;
    for (const [c] of [...count].sort((a, b) => b[1] - a[1])) if (palette.length < 256 && !palette.includes(c) && palette.every((p) => apart(p, c) > near)) palette.push(c);
  }
  const place = new Map(palette.map((c, i) => [c, i]));
  for (const c of count.keys()) {
    if (place.has(c)) continue;
    let best = 0;
    for (let i = 1; i < palette.length; i += 1) if (apart(palette[i], c) < apart(palette[best], c)) best = i;
    place.set(c, best);
  }
  const raw = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) raw[y * (width + 1) + 1 + x] = place.get(colour((y * width + x) * step));
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((c) => [c >> 16, (c >> 8) & 255, c & 255]));
  return Buffer.concat([SIGN, chunk("IHDR", header), chunk("PLTE", colours), chunk("IDAT", deflateSync(raw, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}
