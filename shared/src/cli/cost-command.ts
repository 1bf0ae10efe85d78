/**
 * The command `cost`: the question, and its answer as lines. Pure, and needs no project.
 */
import { type CostQuestion, costs } from './cost.ts';
import { columns, CommandLineError, checkOperands, type Printed } from './usage.ts';

export const COST_HELP = `What a month costs, at list prices of November 2026, beside what publishers and subscribers pay themselves:

  cost --rate 500 --size 1kb --once firestore --later ledger --order

  --rate N                        messages a second, on the average
  --size N                        bytes of one with its attributes: 1000, 1kb, 2.5mb (default 1kb)
  --once off|firestore|redis      default firestore
  --later off|queue|ledger        default off
  --order                         numbered streams
  --duplicates N                  deliveries of what was processed already, for each message (default 0)
  --region us-west1|nam5          whose prices of Firestore (default us-west1)`;

type Values = Readonly<
  Partial<Record<'rate' | 'size' | 'once' | 'later' | 'duplicates' | 'region', string | undefined>> & {
    order?: boolean | undefined;
  }
>;

/** Throws CommandLineError. */
export function costQuestion(operands: readonly string[], values: Values): CostQuestion {
  checkOperands(operands, 0, 'cost --rate N');
  if (values.rate === undefined)
    throw new CommandLineError('--rate is not given; accepted: messages a second');
  return {
    rate: number('--rate', values.rate, 0.000_001, 10_000_000),
    bytes: bytesOf(values.size ?? '1kb'),
    once: choice('--once', values.once ?? 'firestore', ['off', 'firestore', 'redis']),
    later: choice('--later', values.later ?? 'off', ['off', 'queue', 'ledger']),
    order: values.order === true,
    duplicates: number('--duplicates', values.duplicates ?? '0', 0, 10),
    region: choice('--region', values.region ?? 'us-west1', ['us-west1', 'nam5']),
  };
}

export function answerCost(question: CostQuestion): Printed {
  const lines = costs(question);
  const total = lines.reduce((sum, { dollars = 0 }) => sum + dollars, 0);
  const money = (value: number): string => `$${value.toFixed(2)}`;
  const million = total / ((question.rate * 30 * 86_400) / 1e6);
  return {
    object: { question, lines, total, perMillionMessages: million },
    lines: [
      ...columns([
        ...lines.map(({ what, amount, dollars }) => [
          what,
          amount,
          dollars === undefined ? 'at your price' : money(dollars),
        ]),
        ['together, without what has your price', '', money(total)],
      ]),
      `${money(million)} for a million messages`,
    ],
  };
}

function number(option: string, text: string, least: number, most: number): number {
  const value = /^\d{1,8}(\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new CommandLineError(
    `${option} is ${JSON.stringify(text)}; accepted: a number from ${least} to ${most}`,
  );
}

function bytesOf(text: string): number {
  const [, digits = '', unit = ''] = /^(\d{1,8}(?:\.\d{1,3})?)(b|kb|mb)?$/i.exec(text) ?? [];
  const factors: Readonly<Record<string, number>> = { '': 1, b: 1, kb: 1_000, mb: 1_000_000 };
  const bytes = Number(digits) * (factors[unit.toLowerCase()] ?? 1);
  if (digits !== '' && bytes >= 1 && bytes <= 10_000_000) return Math.round(bytes);
  throw new CommandLineError(
    `--size is ${JSON.stringify(text)}; accepted: bytes, such as 1000, 1kb or 2.5mb, up to 10mb`,
  );
}

function choice<Value extends string>(option: string, text: string, accepted: readonly Value[]): Value {
  const found = accepted.find((value) => value === text);
  if (found !== undefined) return found;
  throw new CommandLineError(`${option} is ${JSON.stringify(text)}; accepted: ${accepted.join(', ')}`);
}
