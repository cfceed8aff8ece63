// PNG files of a third of the size: Chromium's have 24 bits for each pixel, and the console has few colours. Debian's tools for that
// are more packages than these lines are worth.
import zlib from "node:zlib";

const COLOURS = 256;
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

// The pixels of a file as Chromium writes it: RGB or RGBA of 8 bits, not interlaced. Alpha is dropped.
function read(png) {
  const data = [];
  let header;
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const kind = png.toString("latin1", at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (kind === "IHDR") header = body;
    if (kind === "IDAT") data.push(body);
    at += length + 12;
  }
  const [width, height, depth, type, interlaced] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9], header[12]];
  const step = { 2: 3, 6: 4 }[type];
  if (depth !== 8 || !step || interlaced) throw new Error(`unexpected PNG of type ${type}, depth ${depth}`);
  const raw = zlib.inflateSync(Buffer.concat(data));
  const stride = width * step;
  const pixels = new Uint32Array(width * height);
  let above = new Uint8Array(stride);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)];
    const row = new Uint8Array(raw.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)));
    for (let i = 0; i < stride; i++) {
      const [left, up, corner] = [i < step ? 0 : row[i - step], above[i], i < step ? 0 : above[i - step]];
      const guess = left + up - corner;
      const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
      row[i] += [0, left, up, (left + up) >> 1, a <= b && a <= c ? left : b <= c ? up : corner][filter];
    }
    for (let x = 0; x < width; x++) pixels[y * width + x] = (row[x * step] << 16) | (row[x * step + 1] << 8) | row[x * step + 2];
    above = row;
  }
  return { width, height, pixels };
}

const distance = (a, b) => [16, 8, 0].reduce((sum, bits) => sum + (((a >> bits) & 255) - ((b >> bits) & 255)) ** 2, 0);

function chunk(kind, body) {
  const out = Buffer.alloc(body.length + 12);
  out.writeUInt32BE(body.length, 0);
  out.write(kind, 4, "latin1");
  body.copy(out, 8);
  out.writeUInt32BE(crc32(out.subarray(4, body.length + 8)), body.length + 8);
  return out;
}
function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

// The most frequent colours, without those that look like a more frequent one: else shades of the text would leave no place for the
// colours of a small mark.
function paletteOf(counts) {
  const byFrequency = [...counts].sort((left, right) => right[1] - left[1] || left[0] - right[0]).map(([colour]) => colour);
  for (let apart = 64; ; apart *= 2) {
    const palette = [];
    for (const colour of byFrequency) if (palette.every((other) => distance(other, colour) >= apart)) palette.push(colour);
    if (palette.length <= COLOURS) return palette;
  }
}

// The same picture with a palette; each other colour becomes the nearest one in it.
export function withPalette(png) {
  const { width, height, pixels } = read(png);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const palette = paletteOf(counts);
  const nearest = new Map();
  for (const colour of counts.keys()) nearest.set(colour, palette.reduce((best, _, at) => (distance(palette[at], colour) < distance(palette[best], colour) ? at : best), 0));
  const rows = Buffer.alloc((width + 1) * height);  // Each begins with its filter: none.
  pixels.forEach((pixel, at) => { rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = nearest.get(pixel); });
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  return Buffer.concat([SIGNATURE, chunk("IHDR", header), chunk("PLTE", Buffer.from(palette.flatMap((one) => [one >> 16, (one >> 8) & 255, one & 255]))),
    chunk("IDAT", zlib.deflateSync(rows, { level: 9, memLevel: 9 })), chunk("IEND", Buffer.alloc(0))]);
}
