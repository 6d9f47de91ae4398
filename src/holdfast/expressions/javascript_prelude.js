// One evaluation, seen from inside the realm: what the script sees and changes, how it ends.
//
// QuickJS refuses to call Python under a time limit. So the facts a script is known to need come
// with the call; for any other the script is stopped with a request, Python answers, and the script
// runs again from the start with the answer among its facts. What it changes goes out at the end.
//
// The fragments values, prelude, time, types and guard are one strict function, put together in
// `javascript_realm`; guard comes last and freezes whatever a script can reach.

// The evaluation under way. Realms are never entered twice at a time, so there is only one.
let facts; // what is known, by key
let given; // variables that came in as objects, as they were written; null when none did
let written; // names of variables the script has set; null when none
let effects; // other changes, in order; null when none
let request; // the first thing the script asked that is not known; null while there is none
let calls; // how many host functions were called so far
let guids; // how many GUIDs were drawn so far
let dice; // the generator behind Math.random, once it is used
let outcome; // how a script that may await has ended; null while it has not

const begin = (sent) => {
  facts = new Map();
  given = written = effects = request = dice = outcome = null;
  calls = guids = 0;
  for (let i = 0; i < sent.length; i += 2) {
    const value = open(sent[i + 1]);
    facts.set(sent[i], value);
    if (typeof value === "object" && value !== null && sent[i].startsWith("variable:")) {
      (given ??= new Map()).set(sent[i].slice(9), sent[i + 1]);
    }
  }
};

// Scripts may catch this. It does not help them: while a request is open the outcome is ignored.
const WAIT = { message: "waiting for an answer" };

// Only the first request counts: what a script does after it, say in a catch, it may never do once
// the answer is there.
const ask = (...asked) => {
  request ??= asked;
  throw WAIT;
};

const fact = (key) => {
  const value = facts.get(key);
  return value === undefined ? ask(key) : value;
};

const assign = (name, value) => {
  facts.set(`variable:${name}`, value === undefined ? null : value);
  (written ??= new Set()).add(`${name}`);
};

// `value` is text, a list of texts or null.
const cause = (effect, key, value) => {
  if (key !== null) facts.set(key, value);
  (effects ??= []).push([effect, null, value]);
};

const call = (name, args) => {
  const key = `call:${calls++}`;
  const answer = facts.get(key);
  if (answer === undefined) {
    tagged = false;
    const packed = leave(`An argument of ${name}`, args);
    return ask(key, name, packed, tagged);
  }
  if (answer instanceof Refusal) throw new Error(answer.message);
  return answer;
};

// What the names in front of a script are (`javascript_names`). Made here and not there, so that a
// stack shows the line of the script that uses them.
const reader = (key, member) => (member === undefined ? () => fact(key) : () => fact(key)[member]);
const writer = (name) => (value) => assign(name, value);
const caller = (name) => (...args) => call(name, args);

// --- how it ends

const isUntouched = (name, raw) => {
  const value = facts.get(`variable:${name}`);
  try {
    // As it came, letter by letter? Mostly it is.
    if (raw[0] === "j" && stringify(value) === raw.slice(1)) return true;
    isComparing = true;
    return stringify(pack(value, [])) === stringify(pack(open(raw), []));
  } catch {
    return false; // it cannot be written any more; when it is to leave, the reason will be told
  } finally {
    isComparing = false;
  }
};

const changes = () => {
  if (given === null && written === null && effects === null) return null;
  const found = effects ?? [];
  if (given !== null) {
    for (const [name, raw] of given) {
      if (!isUntouched(name, raw)) (written ??= new Set()).add(name);
    }
  }
  for (const name of written ?? []) {
    found.push(["variable", name, leave(`Variable ${name}`, facts.get(`variable:${name}`))]);
  }
  return found.length === 0 ? null : found;
};

// A reply is a number or a boolean, or JSON. Never null: that is what the binding gives when it has
// no memory left for a string. Never a text we put together: the binding does not know ropes.
const write = (reply) => {
  const text = stringify(reply);
  if (text.length > TEXT_LIMIT) throw new Unfit("What the script gives back is too large.");
  return text;
};

const finish = (value) => {
  if (request !== null) return write([1, ...request]);
  tagged = false;
  const changed = changes();
  if (changed !== null) return write([0, leave("The result", value), tagged, changed]);
  if (typeof value === "number" || typeof value === "boolean") return value;
  if (value === undefined || value === null) return "[0,null,false]";
  const packed = leave("The result", value); // before `tagged` is read
  return write([0, packed, tagged]);
};

const plain = (value) => `${value}`.toWellFormed();
const brief = (value) => plain(value).slice(0, 2000);

// Our own lines have high numbers; the first other one in the stack is the script's.
const lineIn = (stack) => {
  for (const [, line] of `${stack}`.matchAll(/<input>:(\d+)/g)) {
    if (line < FIRST_LINE) return +line;
  }
  return null;
};

const describe = (error) => {
  if (error instanceof Unfit) return stringify([2, "", error.message, null]);
  if (error instanceof Error) {
    return stringify([2, brief(error.name), brief(error.message), lineIn(error.stack)]);
  }
  const thrown = typeof error === "object" ? stringify(error) : error;
  return stringify([2, "", `Threw ${brief(thrown)}`, null]);
};

// The binding describes exceptions after the time limit is over, and that can run the script's own
// code. So no exception of the script may leave; only those of the engine do.
const failed = (error) => {
  try {
    return request === null ? describe(error) : write([1, ...request]);
  } catch (worse) {
    if (worse instanceof Unfit) return describe(worse);
    return '[2,"","Threw something that cannot be described",null]';
  }
};

const forget = () => {
  facts = given = written = effects = request = dice = outcome = null;
};

const run = (script, ...sent) => {
  try {
    begin(sent);
    return finish(script(reader, writer, caller, surround));
  } catch (error) {
    return failed(error);
  } finally {
    forget();
  }
};

// Scripts that may await: `start`, then the pending jobs, then `settle`.
const { then } = Promise.prototype;

const start = (script, ...sent) => {
  try {
    begin(sent);
    const value = script(reader, writer, caller, surround);
    if (value instanceof Promise) {
      const kept = (value) => (outcome = { value });
      const broken = (error) => (outcome = { error });
      Reflect.apply(then, value, [kept, broken]);
    } else {
      outcome = { value };
    }
  } catch (error) {
    outcome = { error };
  }
};

const settle = () => {
  try {
    if (outcome === null) throw new Unfit("The result is a promise that nothing resolves.");
    return "error" in outcome ? failed(outcome.error) : finish(outcome.value);
  } catch (error) {
    return failed(error);
  } finally {
    forget();
  }
};

// --- what is the same for all scripts. What a variable or a host function is called, the script's
// own head says (`javascript_source`).

const names = () => {
  const all = new Set(fact("names"));
  for (const name of written ?? []) all.add(name);
  return [...all];
};

// Never seen from outside: what is set here to null is, as in Elsa, not copied back.
const set = (_, name, value) => {
  if (typeof name === "symbol") return false;
  if (value === null || value === undefined) {
    facts.set(`variable:${name}`, null);
    written?.delete(name);
    given?.delete(name);
  } else {
    assign(name, value);
  }
  return true;
};

const variables = new Proxy(Object.create(null), {
  get: (_, name) => (typeof name === "symbol" ? undefined : fact(`variable:${name}`)),
  set,
  has: (_, name) => names().includes(name),
  ownKeys: names,
  deleteProperty: (_, name) => set(_, name, null),
  defineProperty: (_, name, { value }) => set(_, name, value),
  getOwnPropertyDescriptor: (_, name) =>
    names().includes(name)
      ? { value: fact(`variable:${name}`), writable: true, enumerable: true, configurable: true }
      : undefined,
  setPrototypeOf: () => false,
  preventExtensions: () => false,
});

// `globalThis` and `this` of scripts that look for names at run time.
const surround = (own) => Object.assign(Object.create(globalThis), own);

const orNull = (value) => (value === undefined || value === null ? null : plain(value));

const scopeFunctions = {
  getVariable: (name) => fact(`variable:${name}`),
  setVariable: (name, value) => assign(`${name}`, value),
  getInput: (name) => fact(`input:${name}`),
  getOutputFrom: (activity, output) => fact(`output:${activity}\0${output ?? ""}`),
  getLastResult: () => fact("last"),
  getConfig: (key) => fact(`config:${key}`),
  getWorkflowDefinitionId: () => fact("definition"),
  getWorkflowDefinitionVersionId: () => fact("versionId"),
  getWorkflowDefinitionVersion: () => fact("version"),
  getWorkflowInstanceId: () => fact("instance"),
  getCorrelationId: () => fact("correlation"),
  setCorrelationId: (value) => cause("correlation", "correlation", orNull(value)),
  getWorkflowInstanceName: () => fact("name"),
  setWorkflowInstanceName: (value) => cause("name", "name", orNull(value)),
  setOutcome: (name) => cause("outcomes", null, [plain(name)]),
  setOutcomes: (...outcomes) => cause("outcomes", null, outcomes.flat().map(plain)),
};

// --- compiling

const evaluate = eval; // called by another name it is global: nothing of ours is in its sight

const make = (text) => evaluate(text);

// What follows `throw` is compiled and does not run.
const complaint = (text) => {
  try {
    return evaluate(`throw 0;${text}`);
  } catch (error) {
    return error === 0 ? null : error;
  }
};

// Why a text is not the body of a function; "" when it is one. A text that closes our brackets and
// opens others can fit into one of the two, but not into both.
const objection = (body) => {
  const error = complaint(`(()=>{${body}\n})`) ?? complaint(`(()=>{{${body}\n}})`);
  return error === null ? "" : stringify([brief(error.message), lineIn(error.stack)]);
};

// Whether a text is a whole script, one without `return` outside of functions. It may declare names,
// which the frozen globals refuse; that is another kind of error.
const isScript = (text) => !(complaint(text) instanceof SyntaxError);
