// Values on their way in and out of the realm; `javascript_values` is the other side of it.
//
// JSON carries what it can. What it cannot is an object with the one key TAG, a random word that no
// script and no data can know: {[TAG]: [kind, ...]}.

const { stringify } = JSON; // as it is before guard fences it
const DEPTH = 64;
const BIG = 2n ** 1024n; // to write out a larger one takes seconds that no limit can interrupt

class Unfit extends Error {}

class Refusal {
  constructor(message) {
    this.message = message;
  }
}

const revive = (value) => {
  if (typeof value !== "object" || value === null) return value;
  const tag = value[TAG];
  if (tag !== undefined) {
    const [kind, first, second] = tag;
    switch (kind) {
      case "date":
        return DateTime.at(first, second);
      case "span":
        return TimeSpan.of(first);
      case "bytes":
        return Uint8Array.fromBase64(first);
      case "int":
        return BigInt(first);
      case "float":
        return Number(first);
      default:
        return new Refusal(first);
    }
  }
  for (const key of Object.keys(value)) value[key] = revive(value[key]);
  return value;
};

// Numbers, booleans and null come as they are. Strings begin with what they are: `s` text, `j` JSON,
// `t` JSON with tags in it.
const open = (raw) => {
  if (typeof raw !== "string") return raw;
  if (raw[0] === "s") return raw.slice(1);
  const value = JSON.parse(raw.slice(1));
  return raw[0] === "j" ? value : revive(value);
};

let tagged = false; // whether anything packed since this was last reset has a tag in it

const tag = (...parts) => {
  tagged = true;
  return { [TAG]: parts };
};

let isComparing = false; // whether what is packed will not leave, so that it may hold anything

const packNumber = (value) => {
  if (Number.isSafeInteger(value)) return value;
  if (!Number.isFinite(value) && !isComparing) throw new Unfit(`holds ${value}, which is not a number to keep`);
  // JSON would write large numbers with all their digits, and they would come back as exact ones.
  return Math.abs(value) > 2 ** 53 ? tag("float", `${value}`) : value;
};

const packBytes = (view) =>
  tag("bytes", new Uint8Array(view.buffer, view.byteOffset, view.byteLength).toBase64());

const { getTime } = Date.prototype;
const mapForEach = Map.prototype.forEach;
const setForEach = Set.prototype.forEach;

const packList = (list, above) => {
  const packed = [];
  for (let i = 0; i < list.length; i++) packed.push(pack(list[i], above) ?? null);
  return packed;
};

// Objects that are more than their members; undefined for all others.
const packSpecial = (value, above) => {
  if (value instanceof Date) {
    const at = Reflect.apply(getTime, value, []);
    if (Number.isNaN(at)) throw new Unfit("holds an invalid date");
    return tag("date", at, DateTime.microseconds(value));
  }
  if (value instanceof TimeSpan) return tag("span", TimeSpan.microseconds(value));
  if (value instanceof Uint8Array || value instanceof Uint8ClampedArray || value instanceof DataView) {
    return packBytes(value);
  }
  if (ArrayBuffer.isView(value)) return packList(value, above);
  if (value instanceof ArrayBuffer) return tag("bytes", new Uint8Array(value).toBase64());
  if (value instanceof Map) {
    const packed = { __proto__: null };
    Reflect.apply(mapForEach, value, [
      (item, key) => (packed[`${key}`.toWellFormed()] = pack(item, above) ?? null),
    ]);
    return packed;
  }
  if (value instanceof Set) {
    const packed = [];
    Reflect.apply(setForEach, value, [(item) => packed.push(pack(item, above) ?? null)]);
    return packed;
  }
  if (value instanceof Number || value instanceof String || value instanceof Boolean) {
    return pack(value.valueOf(), above);
  }
  if (value instanceof Error) return { name: `${value.name}`, message: `${value.message}` };
  if (value instanceof RegExp) return `${value}`.toWellFormed();
  return undefined;
};

const packMembers = (value, above) => {
  if (typeof value.toJSON === "function") return pack(value.toJSON(), above);
  const packed = { __proto__: null };
  for (const key of Object.keys(value)) {
    const member = pack(value[key], above);
    if (member !== undefined) packed[key.toWellFormed()] = member;
  }
  return packed;
};

// A copy of what JSON can carry, so that writing it runs none of the script's code any more.
// undefined means: leave it out.
const pack = (value, above) => {
  switch (typeof value) {
    case "string":
      // Half of a surrogate pair is nothing that UTF-8, and so a store, could hold.
      return value.isWellFormed() ? value : value.toWellFormed();
    case "number":
      return packNumber(value);
    case "boolean":
      return value;
    case "bigint":
      if (value > BIG || value < -BIG) throw new Unfit("holds an integer of more than 1,024 bits");
      return tag("int", `${value}`);
    case "object":
      break;
    default:
      return undefined;
  }
  if (value === null) return null;
  if (above.length === DEPTH) {
    throw new Unfit(above.includes(value) ? "contains itself" : `is nested deeper than ${DEPTH}`);
  }
  above.push(value);
  let packed;
  if (Array.isArray(value)) {
    packed = packList(value, above);
  } else {
    const kind = Object.getPrototypeOf(value);
    if (kind !== Object.prototype && kind !== null) packed = packSpecial(value, above);
    if (packed === undefined) packed = packMembers(value, above);
  }
  above.pop();
  return packed;
};

// Pack a value that leaves the realm; `what` it is begins the sentence if it cannot.
const leave = (what, value) => {
  if (typeof value === "function" || typeof value === "symbol") {
    throw new Unfit(`${what} is a ${typeof value}. Only data can leave a script.`);
  }
  try {
    return pack(value, []) ?? null;
  } catch (error) {
    if (error instanceof Unfit) throw new Unfit(`${what} ${error.message}.`);
    throw error;
  }
};
