// What makes one realm fit for many scripts, of many tenants, one after the other.
//
// First, nothing lasts: whatever a script can reach is frozen, or belongs to its own call. Second,
// nothing hangs: QuickJS looks at its clock between steps of a script, not inside a built-in that
// loops over ten billion holes, so the built-ins that can do that are fenced or gone. What repeats
// an expensive built-in in a loop is the watchdog's (`javascript_watchdog`).

// --- gone: what runs later, what blocks, what asks the machine, what makes code from text, and what
// came after the JavaScript that definitions are written in and cannot be fenced cheaply. Without
// Proxy an array is an array, and its length a plain number, which all fences below rely on.

const GLOBALS = `Object Function Error EvalError RangeError ReferenceError SyntaxError TypeError URIError
  InternalError AggregateError Array parseInt parseFloat isNaN isFinite decodeURI decodeURIComponent
  encodeURI encodeURIComponent escape unescape Infinity NaN undefined eval Number Boolean String Math
  Reflect Symbol globalThis BigInt Date RegExp JSON Map Set WeakMap WeakSet ArrayBuffer Uint8ClampedArray
  Int8Array Uint8Array Int16Array Uint16Array Int32Array Uint32Array BigInt64Array BigUint64Array
  Float16Array Float32Array Float64Array DataView Promise btoa atob`.split(/\s+/);

const domException = globalThis.DOMException; // still thrown by atob, so it is to be frozen
for (const name of Object.getOwnPropertyNames(globalThis)) {
  if (!GLOBALS.includes(name)) delete globalThis[name];
}

const iteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));
for (const name of Object.getOwnPropertyNames(iteratorPrototype)) delete iteratorPrototype[name];
for (const name of ["isDisjointFrom", "isSubsetOf", "isSupersetOf", "intersection", "difference"]) {
  delete Set.prototype[name];
}
for (const name of ["symmetricDifference", "union"]) delete Set.prototype[name];
for (const name of ["prepareStackTrace", "stackTraceLimit", "captureStackTrace"]) delete Error[name];
delete Array.fromAsync;

const hidden = [
  function () {}, () => {}, function* () {}, async function () {}, async () => {}, async function* () {},
  [][Symbol.iterator](), new Map().entries(), new Set().values(), ""[Symbol.iterator](), "".matchAll(/a/g),
  (function* () {})(), (async function* () {})(), domException,
];

const noFunction = function Function() {
  throw new EvalError("Functions cannot be made from text here.");
};
Object.defineProperty(noFunction, "prototype", { value: Function.prototype, writable: false });
for (const example of hidden.slice(0, 6)) {
  const prototype = Object.getPrototypeOf(example);
  Object.defineProperty(prototype, "constructor", { value: noFunction });
}

// --- fenced

const replace = (holder, methods) => {
  for (const name of Reflect.ownKeys(methods)) {
    Object.defineProperty(holder, name, {
      value: methods[name], writable: true, configurable: true, enumerable: false,
    });
  }
};

// Arrays this long have no room in memory, so they are all holes. Of other objects only those pass
// whose length is a plain number of their own: a getter could give another one to the built-in.
const short = (list) => {
  if (Array.isArray(list)) {
    if (list.length > LENGTH_LIMIT) throw new RangeError("The array is too long.");
  } else if (Object(list) === list && "length" in list) {
    const length = Object.getOwnPropertyDescriptor(list, "length")?.value;
    if (typeof length !== "number") throw new TypeError("The length is not a plain number.");
    if (length > LENGTH_LIMIT) throw new RangeError("The length is too great.");
  }
  return list;
};

const fenced = {};
for (const name of [
  "join", "toLocaleString", "reverse", "sort", "slice", "splice", "copyWithin", "shift", "unshift", "fill",
]) {
  const native = Array.prototype[name];
  fenced[name] = { [name](...args) { return Reflect.apply(native, short(this), args); } }[name];
}
replace(Array.prototype, fenced);

// In plain JavaScript, because lengths can change while these run.
const flatten = (list, depth, into) => {
  for (let i = 0; i < list.length; i++) {
    if (!(i in list)) continue;
    if (depth >= 1 && Array.isArray(list[i])) flatten(list[i], depth - 1, into);
    else into.push(list[i]);
  }
  return into;
};
const { map } = Array.prototype;
replace(Array.prototype, {
  concat(...items) {
    const joined = [];
    for (const item of [this, ...items]) {
      const spread = typeof item === "object" && item !== null ? item[Symbol.isConcatSpreadable] : false;
      if (!(spread ?? Array.isArray(item))) joined.push(item);
      else for (let i = 0; i < item.length; i++) joined.push(item[i]);
    }
    return joined;
  },
  flat(depth = 1) {
    return flatten(this, +depth, []);
  },
  flatMap(...args) {
    return flatten(Reflect.apply(map, this, args), 1, []);
  },
});

// Searching a long text for a long text takes the product of their lengths.
const comparable = (text, part) => {
  if (part.length > 1024 && text.length * part.length > 2 ** 31) {
    throw new RangeError("The texts are too long to search one for the other.");
  }
};
const text = (value, name) => {
  if (value === null || value === undefined) throw new TypeError(`${name} was called on ${value}`);
  return `${value}`;
};
for (const name of ["indexOf", "lastIndexOf", "includes"]) {
  const native = String.prototype[name];
  replace(String.prototype, {
    [name](part, ...from) {
      const whole = text(this, name);
      if (part instanceof RegExp) return Reflect.apply(native, whole, [part, ...from]);
      part = `${part}`;
      comparable(whole, part);
      return Reflect.apply(native, whole, [part, ...from]);
    },
  });
}
for (const [name, symbol] of [
  ["split", Symbol.split], ["replace", Symbol.replace], ["replaceAll", Symbol.replace],
]) {
  const native = String.prototype[name];
  replace(String.prototype, {
    [name](part, ...more) {
      if (part === undefined) return Reflect.apply(native, this, [part, ...more]);
      if (typeof part === "object" && part !== null) {
        const method = part[symbol];
        if (name === "replaceAll" && part instanceof RegExp && !part.flags.includes("g")) {
          throw new TypeError("replaceAll must be called with a global RegExp");
        }
        if (method !== undefined && method !== null) return Reflect.apply(method, part, [this, ...more]);
      }
      const whole = text(this, name);
      part = `${part}`;
      comparable(whole, part);
      return Reflect.apply(native, whole, [part, ...more]);
    },
  });
}

replace(JSON, {
  stringify(value, replacer, ...space) {
    return stringify(value, Array.isArray(replacer) ? short(replacer) : replacer, ...space);
  },
});
replace(String, {
  raw({ raw }, ...values) {
    let whole = "";
    for (let i = 0; i < raw.length; i++) whole += (i > 0 && i <= values.length ? values[i - 1] : "") + raw[i];
    return whole;
  },
});

// --- there for scripts

replace(Math, { random });
replace(String.prototype, {
  // For GUIDs, which are text here and objects in .NET.
  ToString(format) {
    return format === "N" ? this.replaceAll("-", "") : `${this}`;
  },
});
replace(globalThis, {
  ...scopeFunctions, ...textFunctions,
  Date: BurstDate, Function: noFunction, DateTime, DateTimeOffset, TimeSpan, Guid, Random, LogPersistenceMode,
});
Object.defineProperty(globalThis, "args", { get: () => fact("arguments"), configurable: true });

// --- frozen. A frozen prototype makes `point.toString = ...` fail on everything that inherits from
// it. So the members that people do replace become accessors whose setter makes an own member.

const allowOverride = (prototype, names) => {
  for (const name of names) {
    const { value, configurable } = Object.getOwnPropertyDescriptor(prototype, name) ?? {};
    if (value === undefined || !configurable) continue;
    Object.defineProperty(prototype, name, {
      get: () => value,
      set(own) {
        if (Object(this) !== this) return;
        Reflect.defineProperty(this, name, { value: own, writable: true, enumerable: true, configurable: true });
      },
      configurable: true,
    });
  }
};
for (const name of GLOBALS) {
  const prototype = globalThis[name]?.prototype;
  if (prototype === undefined) continue;
  const isPlain = name === "Object" || name.endsWith("Error");
  allowOverride(prototype, isPlain ? Object.getOwnPropertyNames(prototype) : ["constructor", "toString", "valueOf"]);
}

const reached = new Set();
const freeze = (root) => {
  const waiting = [];
  const reach = (value) => {
    const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
    if (!isObject || reached.has(value)) return;
    reached.add(value);
    waiting.push(value);
  };
  reach(root);
  while (waiting.length > 0) {
    const next = waiting.pop();
    for (const key of Reflect.ownKeys(next)) {
      const { value, get, set } = Object.getOwnPropertyDescriptor(next, key);
      reach(value);
      reach(get);
      reach(set);
    }
    reach(Object.getPrototypeOf(next));
    if (next !== globalThis) Object.freeze(next);
  }
};
for (const root of [globalThis, reader, writer, caller, surround, WAIT, Unfit, Refusal, ...hidden]) freeze(root);

// Not walked: its members are the variables of whoever runs next.
Object.defineProperty(globalThis, "variables", { value: variables });
Object.freeze(globalThis);

const builtIn = () => stringify(Object.getOwnPropertyNames(globalThis));

const entrances = { run, start, settle, make, objection, isScript, builtIn };
return (name) => entrances[name];
