// Date, and the host's DateTime, DateTimeOffset and TimeSpan. The present is the burst's instant.

const NativeDate = Date;
const now = () => fact("now");

// new Date() and Date.now() are the burst's present instant.
const BurstDate = function Date(...parts) {
  if (new.target === undefined) return new NativeDate(now()).toString();
  return Reflect.construct(NativeDate, parts.length === 0 ? [now()] : parts, new.target);
};
Object.defineProperty(BurstDate, "length", { value: 7 });
Object.defineProperty(BurstDate, "prototype", { value: NativeDate.prototype, writable: false });
NativeDate.prototype.constructor = BurstDate;
for (const [name, value] of [["now", now], ["parse", NativeDate.parse], ["UTC", NativeDate.UTC]]) {
  Object.defineProperty(BurstDate, name, { value, writable: true, configurable: true });
}

const MICROSECONDS = {
  Ticks: 0.1, Microseconds: 1, Milliseconds: 1e3, Seconds: 1e6, Minutes: 6e7, Hours: 3.6e9, Days: 8.64e10,
};
const DAY = MICROSECONDS.Days;
const pad = (number, width) => `${number}`.padStart(width, "0");

class TimeSpan {
  #microseconds;

  constructor(...parts) {
    if (parts.length < 2) {
      this.#microseconds = Math.round((parts[0] ?? 0) * MICROSECONDS.Ticks);
    } else {
      const [days, hours, minutes, seconds, milliseconds = 0] = parts.length === 3 ? [0, ...parts] : parts;
      const total = (((days * 24 + hours) * 60 + minutes) * 60 + (seconds ?? 0)) * 1e6;
      this.#microseconds = Math.round(total + milliseconds * 1e3);
    }
  }

  static of(microseconds) {
    const span = new TimeSpan(0);
    span.#microseconds = Math.round(microseconds);
    return span;
  }
  static microseconds(span) {
    return span.#microseconds;
  }
  static Parse(text) {
    const [, sign, days, hours, minutes, seconds, fraction] =
      /^\s*(-?)(?:(\d+)\.)?(\d+):(\d+)(?::(\d+)(?:\.(\d{1,7}))?)?\s*$/.exec(text) ??
      /^\s*(-?)(\d+)\s*$/.exec(text) ??
      [];
    if (sign === undefined) throw new Error(`'${text}' is not a time span.`);
    const span = new TimeSpan(+(days ?? 0), +(hours ?? 0), +(minutes ?? 0), +(seconds ?? 0));
    const rest = fraction === undefined ? 0 : +fraction.padEnd(7, "0") / 10;
    return TimeSpan.of((sign ? -1 : 1) * (span.#microseconds + rest));
  }
  static get Zero() {
    return TimeSpan.of(0);
  }

  get Ticks() {
    return this.#microseconds * 10;
  }
  Add(other) {
    return TimeSpan.of(this.#microseconds + other.#microseconds);
  }
  Subtract(other) {
    return TimeSpan.of(this.#microseconds - other.#microseconds);
  }
  Multiply(factor) {
    return TimeSpan.of(this.#microseconds * factor);
  }
  Divide(by) {
    return by instanceof TimeSpan ? this.#microseconds / by.#microseconds : TimeSpan.of(this.#microseconds / by);
  }
  Negate() {
    return TimeSpan.of(-this.#microseconds);
  }
  Duration() {
    return TimeSpan.of(Math.abs(this.#microseconds));
  }
  CompareTo(other) {
    return Math.sign(this.#microseconds - other.#microseconds);
  }
  Equals(other) {
    return other instanceof TimeSpan && this.#microseconds === other.#microseconds;
  }
  ToString() {
    const whole = Math.abs(this.#microseconds);
    const days = Math.floor(whole / DAY);
    const clock = [3.6e9, 6e7, 1e6].map((unit, i) => pad(Math.floor(whole / unit) % [24, 60, 60][i], 2)).join(":");
    const rest = whole % 1e6;
    return `${this.#microseconds < 0 ? "-" : ""}${days ? `${days}.` : ""}${clock}${rest ? `.${pad(rest * 10, 7)}` : ""}`;
  }
  toString() {
    return this.ToString();
  }
  toJSON() {
    return this.ToString();
  }
  valueOf() {
    return this.#microseconds / 1e3;
  }
}

for (const [unit, size] of Object.entries(MICROSECONDS)) {
  const from = { [`From${unit}`]: (count) => TimeSpan.of(count * size) };
  Object.defineProperty(TimeSpan, `From${unit}`, { value: from[`From${unit}`] });
  if (unit === "Ticks") continue;
  const limit = { Days: Infinity, Hours: 24, Minutes: 60, Seconds: 60 }[unit] ?? 1000;
  Object.defineProperty(TimeSpan.prototype, `Total${unit}`, {
    get() {
      return TimeSpan.microseconds(this) / size;
    },
  });
  Object.defineProperty(TimeSpan.prototype, unit, {
    get() {
      return Math.trunc(TimeSpan.microseconds(this) / size) % limit || 0;
    },
  });
}

const MONTHS = "January February March April May June July August September October November December".split(" ");
const WEEKDAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const TOKEN = /yyyy|yy|MMMM|MMM|MM|M|dddd|ddd|dd|d|HH|H|hh|h|mm|m|ss|s|f{1,7}|tt|zzz|K|'[^']*'|\\./g;
const NAMED_FORMATS = {
  o: "yyyy-MM-ddTHH:mm:ss.fffffffK", O: "yyyy-MM-ddTHH:mm:ss.fffffffK", s: "yyyy-MM-ddTHH:mm:ss",
  u: "yyyy-MM-dd HH:mm:ssZ", R: "ddd, dd MMM yyyy HH:mm:ss 'GMT'", r: "ddd, dd MMM yyyy HH:mm:ss 'GMT'",
  d: "MM/dd/yyyy", D: "dddd, dd MMMM yyyy", t: "HH:mm", T: "HH:mm:ss", g: "MM/dd/yyyy HH:mm",
  G: "MM/dd/yyyy HH:mm:ss",
};

const formatToken = (at, token) => {
  const hour = at.getUTCHours();
  switch (token) {
    case "yyyy": return pad(at.getUTCFullYear(), 4);
    case "yy": return pad(at.getUTCFullYear() % 100, 2);
    case "MMMM": return MONTHS[at.getUTCMonth()];
    case "MMM": return MONTHS[at.getUTCMonth()].slice(0, 3);
    case "MM": case "M": return pad(at.getUTCMonth() + 1, token.length);
    case "dddd": return WEEKDAYS[at.getUTCDay()];
    case "ddd": return WEEKDAYS[at.getUTCDay()].slice(0, 3);
    case "dd": case "d": return pad(at.getUTCDate(), token.length);
    case "HH": case "H": return pad(hour, token.length);
    case "hh": case "h": return pad(hour % 12 || 12, token.length);
    case "mm": case "m": return pad(at.getUTCMinutes(), token.length);
    case "ss": case "s": return pad(at.getUTCSeconds(), token.length);
    case "tt": return hour < 12 ? "AM" : "PM";
    case "K": return "Z";
    case "zzz": return "+00:00";
  }
  if (token[0] !== "f") return token[0] === "'" ? token.slice(1, -1) : token.slice(1);
  const micro = at.getUTCMilliseconds() * 1000 + DateTime.microseconds(at);
  return pad(micro * 10, 7).slice(0, token.length);
};

// A Date with the host's members, always in UTC. Instants of the host have microseconds; they last as
// long as the instance is not moved by a method of Date.
class DateTime extends BurstDate {
  #microseconds = 0;
  #at = NaN;

  // Parts as in .NET: months count from 1, and a single number is ticks since the year 1.
  constructor(...parts) {
    if (parts.length > 1) {
      const [year, month, ...rest] = parts;
      super(NativeDate.UTC(year, month - 1, ...rest));
    } else if (typeof parts[0] === "number") {
      super(parts[0] / 1e4 - 62135596800000);
    } else if (parts.length === 0) {
      super(-62135596800000);
    } else {
      super(parts[0]);
    }
  }

  static at(milliseconds, microseconds = 0) {
    const made = new this(new NativeDate(milliseconds));
    if (Number.isNaN(made.getTime())) throw new RangeError("The date is out of range.");
    made.#microseconds = microseconds;
    made.#at = milliseconds;
    return made;
  }
  static microseconds(date) {
    return #at in date && date.#at === Reflect.apply(getTime, date, []) ? date.#microseconds : 0;
  }
  static Parse(text) {
    // Without a zone it is UTC, where JavaScript would take the node's own.
    const iso = /^\s*(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)\s*$/.exec(text);
    const at = NativeDate.parse(iso === null ? text : `${iso[1]}T${iso[2]}Z`);
    if (Number.isNaN(at)) throw new Error(`'${text}' is not a date and time.`);
    return this.at(at);
  }
  static FromUnixTimeSeconds(seconds) {
    return this.at(seconds * 1000);
  }
  static FromUnixTimeMilliseconds(milliseconds) {
    return this.at(milliseconds);
  }
  static get UtcNow() {
    return this.at(now());
  }
  static get Now() {
    return this.at(now());
  }
  static get Today() {
    return this.at(now()).Date;
  }
  static get UnixEpoch() {
    return this.at(0);
  }

  get Year() {
    return this.getUTCFullYear();
  }
  get Month() {
    return this.getUTCMonth() + 1;
  }
  get Day() {
    return this.getUTCDate();
  }
  get Hour() {
    return this.getUTCHours();
  }
  get Minute() {
    return this.getUTCMinutes();
  }
  get Second() {
    return this.getUTCSeconds();
  }
  get Millisecond() {
    return this.getUTCMilliseconds();
  }
  get DayOfWeek() {
    return this.getUTCDay();
  }
  get DayOfYear() {
    return Math.floor((this.getTime() - NativeDate.UTC(this.getUTCFullYear(), 0)) / 864e5) + 1;
  }
  get Date() {
    return this.constructor.at(Math.floor(this.getTime() / 864e5) * 864e5);
  }
  get TimeOfDay() {
    return this.Subtract(this.Date);
  }
  get Ticks() {
    return (this.getTime() + 62135596800000) * 1e4 + DateTime.microseconds(this) * 10;
  }
  Add(span) {
    const total = DateTime.microseconds(this) + TimeSpan.microseconds(span);
    const whole = Math.floor(total / 1000);
    return this.constructor.at(this.getTime() + whole, total - whole * 1000);
  }
  AddMonths(months) {
    const moved = this.constructor.at(this.getTime(), DateTime.microseconds(this));
    moved.setUTCDate(1);
    moved.setUTCMonth(moved.getUTCMonth() + months);
    const last = new NativeDate(NativeDate.UTC(moved.getUTCFullYear(), moved.getUTCMonth() + 1, 0)).getUTCDate();
    moved.setUTCDate(Math.min(this.getUTCDate(), last));
    return this.constructor.at(moved.getTime(), DateTime.microseconds(this));
  }
  AddYears(years) {
    return this.AddMonths(years * 12);
  }
  Subtract(other) {
    if (other instanceof TimeSpan) return this.Add(other.Negate());
    const milliseconds = this.getTime() - other.getTime();
    return TimeSpan.of(milliseconds * 1000 + DateTime.microseconds(this) - DateTime.microseconds(other));
  }
  CompareTo(other) {
    return this.Subtract(other).CompareTo(TimeSpan.Zero);
  }
  Equals(other) {
    return other instanceof BurstDate && this.CompareTo(other) === 0;
  }
  ToUniversalTime() {
    return this;
  }
  ToUnixTimeSeconds() {
    return Math.floor(this.getTime() / 1000);
  }
  ToUnixTimeMilliseconds() {
    return this.getTime();
  }
  ToString(format = "G") {
    return (NAMED_FORMATS[format] ?? format).replace(TOKEN, (token) => formatToken(this, token));
  }
}

for (const unit of Object.keys(MICROSECONDS)) {
  const add = { [`Add${unit}`](count) { return this.Add(TimeSpan[`From${unit}`](count)); } };
  Object.defineProperty(DateTime.prototype, `Add${unit}`, { value: add[`Add${unit}`] });
}

class DateTimeOffset extends DateTime {
  get UtcDateTime() {
    return DateTime.at(this.getTime(), DateTime.microseconds(this));
  }
  get DateTime() {
    return this.UtcDateTime;
  }
  get Offset() {
    return TimeSpan.Zero;
  }
}
