/** String literals of the filter language: double quotes, with the escape sequences of C. */

const SIMPLE: Readonly<Record<string, string>> = {
  '\\': '\\',
  '"': '"',
  "'": "'",
  '?': '?',
  '`': '`',
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};
/** Hexadecimal, Unicode and octal: each stands for one code point. */
const CODE = /x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})/y;
const MAX_CODE_POINT = 0x10_ff_ff;

/** Reads the literal whose opening quote is at `start`; `fail` throws what was expected and where. */
export function readString(
  source: string,
  start: number,
  fail: (wanted: string, where: number) => never,
): Readonly<{ value: string; end: number }> {
  let value = '';
  let at = start + 1;
  for (;;) {
    const next = source[at];
    if (next === undefined) return fail('a closing double quote', at);
    if (next === '"') return { value, end: at + 1 };
    if (next !== '\\') {
      value += next;
      at += 1;
      continue;
    }
    const simple = SIMPLE[source[at + 1] ?? ''];
    if (simple !== undefined) {
      value += simple;
      at += 2;
      continue;
    }
    CODE.lastIndex = at + 1;
    const [all = '', x, u, U, octal] = CODE.exec(source) ?? [];
    const code = octal === undefined ? Number.parseInt(x ?? u ?? U ?? '', 16) : Number.parseInt(octal, 8);
    if (Number.isNaN(code) || code > MAX_CODE_POINT) return fail('an escape sequence', at);
    value += String.fromCodePoint(code);
    at += 1 + all.length;
  }
}
