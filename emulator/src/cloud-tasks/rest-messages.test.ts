import assert from 'node:assert/strict';
import test from 'node:test';
import type { MethodDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { protoFiles } from './protos.ts';
import type { Fields, Kind } from '../proto-json.ts';
import { MESSAGES } from './rest-messages.ts';

type Field = Readonly<{ name: string; type: string; typeName: string; label: string }>;
type Enum = Readonly<{ name: string; value: readonly Readonly<{ name: string; number: number }>[] }>;
type Nested = Readonly<{ name: string; options?: Readonly<{ mapEntry: boolean }> }>;
type Definition = Readonly<{
  type: Enum & { field: readonly Field[]; enumType: readonly Enum[]; nestedType: readonly Nested[] };
}>;

const { file, includeDirs } = protoFiles();
const definitions = loadSync(file, { includeDirs: [...includeDirs] });
const PACKAGE = 'google.cloud.tasks.v2';

/** What the description should say of a field, with the type of a nested message still to be looked up. */
function kindOf(field: Field, within: string): string {
  if (isMap(field, within)) return 'map';
  const repeated = field.label === 'LABEL_REPEATED' ? 'list of ' : '';
  if (field.type === 'TYPE_ENUM' || field.type === 'TYPE_MESSAGE') {
    return repeated + resolved(field.typeName, within);
  }
  return repeated + field.type.replace('TYPE_', '').toLowerCase();
}

function isMap({ typeName }: Field, within: string): boolean {
  const { type } = definitions[within] as unknown as Definition;
  return type.nestedType.some(({ name, options }) => name === typeName && options?.mapEntry === true);
}

const WELL_KNOWN: Readonly<Record<string, string>> = {
  'google.protobuf.Timestamp': 'timestamp',
  'google.protobuf.Duration': 'duration',
  'google.protobuf.FieldMask': 'fieldMask',
};

function resolved(typeName: string, within: string): string {
  for (let scope = within; scope !== ''; scope = scope.slice(0, Math.max(scope.lastIndexOf('.'), 0))) {
    const fullName = `${scope}.${typeName}`;
    if (fullName in definitions || enumOf(fullName).length > 0) return fullName;
  }
  throw new Error(`${typeName} was not found from ${within}`);
}

function compare(fields: Fields, fullName: string): void {
  const { type } = definitions[fullName] as unknown as Definition;
  // google.rpc.Status.details is an Any; this server gives none.
  const expected = type.field.filter(({ name }) => name !== 'details');
  assert.deepEqual(Object.keys(fields).sort(), expected.map(({ name }) => name).sort(), fullName);
  for (const field of expected) compareField(fields[field.name] ?? 'string', kindOf(field, fullName));
}

function compareField(kind: Kind, expected: string): void {
  if (kind === 'strings') return assert.equal(expected, 'list of string');
  if (typeof kind === 'string') return assert.equal(kind, WELL_KNOWN[expected] ?? expected);
  if ('fields' in kind) return compare(kind.fields, expected);
  if ('list' in kind) return compare(kind.list, expected.replace('list of ', ''));
  assert.deepEqual(
    enumOf(expected).map(({ name, number }) => [name, number]),
    kind.values.map((name, number) => [name, number]),
  );
}

/** An enum inside a message is listed there, and not by its own name. */
function enumOf(fullName: string): Enum['value'] {
  const { type } = (definitions[fullName] ?? {}) as unknown as Partial<Definition>;
  if (type !== undefined) return type.value;
  const at = fullName.lastIndexOf('.');
  const owner = (definitions[fullName.slice(0, at)] ?? {}) as unknown as Partial<Definition>;
  return owner.type?.enumType.find(({ name }) => name === fullName.slice(at + 1))?.value ?? [];
}

test('describes the messages of every method as the protos do', () => {
  const service = definitions[`${PACKAGE}.CloudTasks`] as unknown as Record<
    string,
    MethodDefinition<unknown, unknown> & Record<'requestType' | 'responseType', Definition>
  >;
  assert.deepEqual(Object.keys(MESSAGES).sort(), Object.keys(service).sort());
  for (const [rpc, { request, reply }] of Object.entries(MESSAGES)) {
    const home = /Iam/.test(rpc) ? 'google.iam.v1' : PACKAGE;
    compare(request, `${home}.${service[rpc]?.requestType.type.name}`);
    const { name } = service[rpc]?.responseType.type ?? { name: '' };
    if (name !== 'Empty') compare(reply, `${home}.${name}`);
  }
});
