/**
 * Field transforms: what the server calculates from a field's current value. Each gives the new value and the
 * result that the writer gets. A transform that is not known is refused.
 */
import { invalidArgument } from '../grpc-server.ts';
import { type FieldPath, formatFieldPath, getField, parseFieldPath, setField } from './field-path.ts';
import { compareNumbers, equalValues, numberOf } from './order.ts';
import type { WireTimestamp } from './time.ts';
import {
  arrayOf,
  checkFieldName,
  checkValue,
  type Fields,
  NULL,
  type Value,
  type WireValue,
} from './values.ts';

export type WireTransform = Readonly<{
  fieldPath: string;
  transformType?: string;
  setToServerValue?: string | number;
  increment?: WireValue;
  maximum?: WireValue;
  minimum?: WireValue;
  appendMissingElements?: Readonly<{ values: readonly WireValue[] }>;
  removeAllFromArray?: Readonly<{ values: readonly WireValue[] }>;
}>;

export type Transform = Readonly<{
  path: FieldPath;
  /** `result` is what the write's answer reports, where that is not the new value. */
  apply(current: Value | undefined, now: WireTimestamp): Readonly<{ value: Value; result?: Value }>;
}>;

const MAX_INT64 = 2n ** 63n - 1n;
const MIN_INT64 = -(2n ** 63n);

/** Throws INVALID_ARGUMENT for a transform that is not known or whose operand is not of its type. */
export function parseTransform(wire: WireTransform): Transform {
  const path = parseFieldPath(wire.fieldPath);
  for (const segment of path) checkFieldName(segment, wire.fieldPath);
  return { path, apply: operation(wire, path) };
}

/** Applies them in order. Gives the new fields and one result for each transform. */
export function applyTransforms(
  fields: Fields,
  transforms: readonly Transform[],
  now: WireTimestamp,
): Readonly<{ fields: Fields; results: readonly Value[] }> {
  let changed = fields;
  const results = transforms.map(({ path, apply }) => {
    const { value, result } = apply(getField(changed, path), now);
    changed = setField(changed, path, value);
    return result ?? value;
  });
  return { fields: changed, results };
}

function operation(wire: WireTransform, path: FieldPath): Transform['apply'] {
  const where = formatFieldPath(path);
  switch (wire.transformType) {
    case 'setToServerValue':
      if (wire.setToServerValue !== 'REQUEST_TIME') {
        throw invalidArgument(`${where}: the server value ${wire.setToServerValue} is not known`);
      }
      return (_, now) => ({ value: { valueType: 'timestampValue', timestampValue: now } });
    case 'increment': {
      const operand = checkNumber(wire.increment, where);
      return (current) => ({ value: isNumber(current) ? add(current, operand) : operand });
    }
    case 'maximum':
    case 'minimum': {
      const sign = wire.transformType === 'maximum' ? 1 : -1;
      const operand = checkNumber(wire[wire.transformType], where);
      return (current) => ({ value: isNumber(current) ? extreme(current, operand, sign) : operand });
    }
    case 'appendMissingElements': {
      const elements = checkElements(wire.appendMissingElements, where, path.length);
      return (current) => ({ value: append(elementsOf(current), elements), result: NULL });
    }
    case 'removeAllFromArray': {
      const elements = checkElements(wire.removeAllFromArray, where, path.length);
      const removed = (value: Value): boolean => elements.some((element) => equalValues(element, value));
      return (current) => ({
        value: arrayOf(elementsOf(current).filter((value) => !removed(value))),
        result: NULL,
      });
    }
    case undefined:
    default:
      throw invalidArgument(`${where}: the transform ${wire.transformType ?? '(not set)'} is not known`);
  }
}

const isNumber = (value: Value | undefined): value is Value =>
  value?.valueType === 'integerValue' || value?.valueType === 'doubleValue';

function checkNumber(wire: WireValue, where: string): Value {
  const value = checkValue(wire, where);
  if (!isNumber(value)) throw invalidArgument(`${where}: the operand must be an integer or a double`);
  return value;
}

function checkElements(
  wire: WireTransform['appendMissingElements'],
  where: string,
  depth: number,
): readonly Value[] {
  const value = checkValue({ valueType: 'arrayValue', arrayValue: wire } as WireValue, where, depth);
  return elementsOf(value);
}

const elementsOf = (value: Value | undefined): readonly Value[] =>
  value?.valueType === 'arrayValue' ? value.arrayValue.values : [];

function append(current: readonly Value[], elements: readonly Value[]): Value {
  const values = [...current];
  for (const element of elements) {
    if (!values.some((value) => equalValues(value, element))) values.push(element);
  }
  return arrayOf(values);
}

/** Integers saturate at the bounds of 64 bits; one double makes the sum a double. */
function add(current: Value, operand: Value): Value {
  if (current.valueType === 'integerValue' && operand.valueType === 'integerValue') {
    const sum = BigInt(current.integerValue) + BigInt(operand.integerValue);
    const bounded = sum > MAX_INT64 ? MAX_INT64 : sum < MIN_INT64 ? MIN_INT64 : sum;
    return { valueType: 'integerValue', integerValue: String(bounded) };
  }
  const doubleValue = Number(numberOf(current)) + Number(numberOf(operand));
  return { valueType: 'doubleValue', doubleValue };
}

/** Equal numbers keep the stored one; NaN beats every number in both directions. */
function extreme(current: Value, operand: Value, sign: 1 | -1): Value {
  const x = numberOf(current);
  const y = numberOf(operand);
  if (Number.isNaN(x)) return current;
  if (Number.isNaN(y)) return operand;
  return compareNumbers(y, x) * sign > 0 ? operand : current;
}
