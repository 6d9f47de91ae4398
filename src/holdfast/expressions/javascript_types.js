// What scripts find besides JavaScript itself and its dates: chance, GUIDs, text and bytes. Chance comes
// from the scope, so that a burst done again draws the same.

const drawGuid = () => {
  const drawn = fact("guids");
  return guids < drawn.length ? drawn[guids++] : ask("guids", drawn);
};

// sfc32: small, fast, good enough for Math.random and seeded with the whole of a GUID.
const generator = (a, b, c, d) => () => {
  const t = (((a + b) | 0) + d) | 0;
  d = (d + 1) | 0;
  a = b ^ (b >>> 9);
  b = (c + (c << 3)) | 0;
  c = (((c << 21) | (c >>> 11)) + t) | 0;
  return (t >>> 0) / 2 ** 32;
};

const seeded = (hex) => {
  const words = [0, 8, 16, 24].map((at) => parseInt(hex.slice(at, at + 8), 16) | 0);
  const next = generator(...words);
  for (let i = 0; i < 12; i++) next();
  return next;
};

const random = () => (dice ??= seeded(fact("seed").replaceAll("-", "")))();

class Random {
  #next;
  constructor(seed) {
    this.#next = seed === undefined ? random : seeded(pad((seed >>> 0).toString(16), 8).repeat(4));
  }
  static get Shared() {
    return new Random();
  }
  NextDouble() {
    return this.#next();
  }
  Next(...range) {
    const [from, to] = range.length > 1 ? range : [0, range[0] ?? 2147483647];
    return from + Math.floor(this.#next() * (to - from));
  }
}

// --- GUIDs. They are plain text here, so that they compare and print as one expects.

const parseGuid = (text) => {
  const hex = /^\s*[{(]?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})[)}]?\s*$/i.exec(text);
  if (hex === null) throw new Error(`'${text}' is not a GUID.`);
  return hex.slice(1).join("-").toLowerCase();
};

const LogPersistenceMode = { Inherit: "Inherit", Include: "Include", Exclude: "Exclude" };

const Guid = {
  NewGuid: drawGuid,
  Parse: parseGuid,
  Empty: "00000000-0000-0000-0000-000000000000",
};

// .NET stores the first three groups of a GUID with their lowest byte first.
const GUID_BYTES = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];

const newShortGuid = () => {
  const bytes = Uint8Array.fromHex(drawGuid().replaceAll("-", ""));
  return Uint8Array.from(GUID_BYTES, (at) => bytes[at]).toBase64().replace(/[/+=]/g, "");
};

// --- text and bytes

const bytesFromString = (text) => {
  const binary = unescape(encodeURIComponent(`${text}`.toWellFormed()));
  return Uint8Array.from({ length: binary.length }, (_, i) => binary.charCodeAt(i));
};

const bytesOf = (value) => (value instanceof Uint8Array ? value : new Uint8Array(value));

// As .NET does it: what is not UTF-8 becomes U+FFFD, it is not an error.
const bytesToString = (value) => {
  const bytes = bytesOf(value);
  let text = "";
  for (let i = 0; i < bytes.length; ) {
    const first = bytes[i++];
    const more = first < 0x80 ? 0 : first < 0xc2 ? -1 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : -1;
    let point = more <= 0 ? first : first & (0x3f >> more);
    let taken = 0;
    while (taken < more && (bytes[i] & 0xc0) === 0x80) {
      point = (point << 6) | (bytes[i++] & 0x3f);
      taken++;
    }
    const isShort = point < [0, 0, 0x800, 0x10000][more] || (point >= 0xd800 && point < 0xe000) || point > 0x10ffff;
    text += more < 0 || taken < more || isShort ? "\ufffd" : String.fromCodePoint(point);
  }
  return text;
};

const bytesToBase64 = (value) => bytesOf(value).toBase64();
const bytesFromBase64 = (text) => Uint8Array.fromBase64(`${text}`);

const writeJson = (key, value) => {
  if (typeof value === "bigint") return JSON.rawJSON(`${value}`);
  return value instanceof Uint8Array ? value.toBase64() : value;
};

const textFunctions = {
  isNullOrEmpty: (text) => text === null || text === undefined || `${text}` === "",
  isNullOrWhiteSpace: (text) => text === null || text === undefined || `${text}`.trim() === "",
  toJson: (value) => JSON.stringify(value, writeJson) ?? "null",
  parseGuid,
  newGuid: drawGuid,
  newGuidString: drawGuid,
  newShortGuid,
  getGuidString: drawGuid,
  getShortGuid: newShortGuid,
  bytesToString,
  bytesFromString,
  bytesToBase64,
  bytesFromBase64,
  stringToBase64: (text) => bytesFromString(text).toBase64(),
  stringFromBase64: (text) => bytesToString(bytesFromBase64(text)),
  streamToBytes: bytesOf, // a stream arrives here as its bytes
  streamToBase64: bytesToBase64,
};

// Host objects have their members in both cases.
const addCamelCase = (holder) => {
  for (const name of Object.getOwnPropertyNames(holder)) {
    const camel = name[0].toLowerCase() + name.slice(1);
    if (camel !== name && !(camel in holder)) {
      Object.defineProperty(holder, camel, Object.getOwnPropertyDescriptor(holder, name));
    }
  }
};
for (const type of [TimeSpan, DateTime, DateTimeOffset, Random]) {
  addCamelCase(type);
  addCamelCase(type.prototype);
}
addCamelCase(Guid);
