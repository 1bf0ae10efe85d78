/**
 * Schemas of Protocol Buffers, read by `protobufjs`: one file of proto2, proto3 or an edition, with one message at the top
 * and no imports (https://cloud.google.com/pubsub/docs/schemas). Revisions may add and remove fields that are not
 * required, and change none (https://cloud.google.com/pubsub/docs/commit-schema-revision).
 */
import protobuf from 'protobufjs';
import type { Judge, Language } from './language.ts';
import { jsonViolation } from './proto-json.ts';
import { wireViolation } from './proto-wire.ts';

export const protocolBuffer: Language = {
  parse(definition): Judge {
    const type = messageOf(definition);
    return {
      violation: (encoding, data) =>
        encoding === 'JSON' ? jsonViolation(type, data) : wireViolation(type, data),
    };
  },
  conflict: (newer, older) => between(messageOf(newer), messageOf(older), new Set()),
};

function messageOf(definition: string): protobuf.Type {
  const { root, imports = [] } = protobuf.parse(definition, new protobuf.Root(), { keepCase: true });
  if (imports.length > 0) throw new Error(`imports are not supported: ${imports[0]}`);
  root.resolveAll();
  const [type, ...others] = topLevel(root);
  if (!(type instanceof protobuf.Type) || others.length > 0) {
    throw new Error('a Protocol Buffers schema defines exactly one type at the top, a message');
  }
  return type;
}

/** Messages and enums that are not inside of others. */
const topLevel = (space: protobuf.NamespaceBase): readonly protobuf.ReflectionObject[] =>
  space.nestedArray.flatMap((each) => {
    if (each instanceof protobuf.Type || each instanceof protobuf.Enum) return [each];
    return each instanceof protobuf.Namespace ? topLevel(each) : [];
  });

function between(newer: protobuf.Type, older: protobuf.Type, seen: Set<protobuf.Type>): string | undefined {
  // A message may hold itself.
  if (seen.has(newer)) return undefined;
  seen.add(newer);
  for (const field of newer.fieldsArray) {
    const before = older.fieldsById[field.id];
    const found = before === undefined ? whyRequired(field, 'added') : changed(field, before, seen);
    if (found !== undefined) return found;
  }
  for (const field of older.fieldsArray) {
    const found = newer.fieldsById[field.id] === undefined ? whyRequired(field, 'removed') : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

const whyRequired = ({ name, required }: protobuf.Field, what: string): string | undefined =>
  required ? `${name} is required and cannot be ${what}.` : undefined;

function changed(
  field: protobuf.Field,
  before: protobuf.Field,
  seen: Set<protobuf.Type>,
): string | undefined {
  if (field.name !== before.name || shapeOf(field) !== shapeOf(before)) {
    return `${field.name} of type ${shapeOf(field)} is not compatible with ${before.name} of type ${shapeOf(before)}.`;
  }
  const { resolvedType } = field;
  return resolvedType instanceof protobuf.Type && before.resolvedType instanceof protobuf.Type
    ? between(resolvedType, before.resolvedType, seen)
    : undefined;
}

function shapeOf(field: protobuf.Field): string {
  if (field instanceof protobuf.MapField) return `map<${field.keyType}, ${field.type}>`;
  return `${field.repeated ? 'repeated ' : field.required ? 'required ' : ''}${field.type}`;
}
