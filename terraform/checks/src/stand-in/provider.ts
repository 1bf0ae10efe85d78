/**
 * A stand-in for the google provider that Terraform itself talks to: it knows the committed schema and plans whatever
 * fits it. So Terraform's own checks of types, references, expressions and variables run without the provider, and a
 * plan shows every resource with its arguments. What only Google knows is left out.
 *
 * An apply creates nothing: what was planned is what is there from then on, in Terraform's own state, so that a further
 * plan shows what a change would do to it. What cannot be changed in place is replaced, of the types whose loss costs
 * messages (known-values.ts).
 */
import {
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { fileURLToPath } from 'node:url';
import { NOT_IN_PLACE } from '../known-values.ts';
import type { Block, ProviderSchema } from '../schema.ts';
import { decode, encode, type ValueMap } from './msgpack.ts';
import { withOutputs, withUnknowns } from './outputs.ts';

export type StandIn = Readonly<{
  /** Value of `TF_REATTACH_PROVIDERS`, with which Terraform finds it. */
  reattach: string;
  close: () => Promise<void>;
}>;

type Dynamic = Readonly<{ msgpack: Buffer }>;
type Typed = Readonly<{ type_name: string; config: Dynamic }>;
type Plan = Readonly<{ type_name: string; prior_state: Dynamic; proposed_new_state: Dynamic }>;
type Apply = Readonly<{ type_name: string; planned_state: Dynamic }>;
type Read = Readonly<{ current_state: Dynamic }>;
type Upgrade = Readonly<{ raw_state: Readonly<{ json: Buffer }> }>;

const PROVIDER: Block = {
  attributes: Object.fromEntries(
    ['project', 'region', 'zone'].map((name) => [name, { type: 'string', use: 'optional' }]),
  ),
  blocks: {},
};

export type Outputs = 'made up' | 'unknown';

/** On a free port of 127.0.0.1. The caller closes it. `outputs`: what is said of what only Google can know. */
export async function startStandIn(schema: ProviderSchema, outputs: Outputs): Promise<StandIn> {
  const server = new Server({
    'grpc.max_receive_message_length': 1 << 26,
    'grpc.max_send_message_length': 1 << 26,
  });
  const definition = loadSync(fileURLToPath(new URL('../../schema/provider.proto', import.meta.url)), {
    keepCase: true,
    defaults: true,
    longs: Number,
    enums: String,
  });
  server.addService(definition['tfplugin5.Provider'] as ServiceDefinition, implementation(schema, outputs));
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const address = {
    'hashicorp/google': {
      Protocol: 'grpc',
      ProtocolVersion: 5,
      Pid: process.pid,
      Test: true,
      Addr: { Network: 'tcp', String: `127.0.0.1:${port}` },
    },
  };
  return {
    reattach: JSON.stringify(address),
    close: async () => server.forceShutdown(),
  };
}

function implementation(schema: ProviderSchema, outputs: Outputs): UntypedServiceImplementation {
  const answer =
    <Request>(of: (request: Request) => object) =>
    (call: Readonly<{ request: Request }>, callback: (error: Error | null, value?: object) => void): void => {
      try {
        callback(null, of(call.request));
      } catch (error) {
        const summary = error instanceof Error ? error.message : String(error);
        callback(null, { diagnostics: [{ severity: 'ERROR', summary, detail: '' }] });
      }
    };
  const blockOf = (blocks: Readonly<Record<string, Block>>, type: string): Block => {
    const block = blocks[type];
    if (block === undefined) throw new Error(`${type} is not in the schema`);
    return block;
  };
  const planned = (type: string, block: Block, { msgpack }: Dynamic): object => {
    const value = decode(msgpack) as ValueMap | null;
    // Null: it is destroyed.
    if (value === null) return { msgpack };
    return {
      msgpack: encode(outputs === 'unknown' ? withUnknowns(block, value) : withOutputs(type, block, value)),
    };
  };
  return {
    GetSchema: answer(() => ({
      provider: schemaMessage(PROVIDER),
      resource_schemas: mapped(schema.resources, schemaMessage),
      data_source_schemas: mapped(schema.data, schemaMessage),
    })),
    PrepareProviderConfig: answer(({ config }: { config: Dynamic }) => ({ prepared_config: config })),
    ValidateResourceTypeConfig: answer(() => ({})),
    ValidateDataSourceConfig: answer(() => ({})),
    Configure: answer(() => ({})),
    ReadDataSource: answer(({ type_name: type, config }: Typed) => ({
      // A data source is read while it is planned.
      state: {
        msgpack: encode(withOutputs(type, blockOf(schema.data, type), decode(config.msgpack) as ValueMap)),
      },
    })),
    PlanResourceChange: answer(
      ({ type_name: type, prior_state: prior, proposed_new_state: proposed }: Plan) => ({
        planned_state: planned(type, blockOf(schema.resources, type), proposed),
        requires_replace: replacing(type, prior, proposed),
      }),
    ),
    ApplyResourceChange: answer(({ type_name: type, planned_state: state }: Apply) => {
      const value = decode(state.msgpack) as ValueMap | null;
      if (value === null) return { new_state: state };
      return {
        new_state: { msgpack: encode(withOutputs(type, blockOf(schema.resources, type), value)) },
      };
    }),
    ReadResource: answer(({ current_state: state }: Read) => ({ new_state: state })),
    UpgradeResourceState: answer(({ raw_state: { json } }: Upgrade) => ({ upgraded_state: { json } })),
    Stop: answer(() => ({})),
  };
}

/** The arguments that differ and cannot be changed in place. */
function replacing(type: string, prior: Dynamic, proposed: Dynamic): readonly object[] {
  const [before, after] = [prior, proposed].map(({ msgpack }) => decode(msgpack) as ValueMap | null);
  if (!before || !after) return [];
  return (NOT_IN_PLACE[type] ?? [])
    .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
    .map((name) => ({ steps: [{ attribute_name: name }] }));
}

const mapped = <From, To>(
  from: Readonly<Record<string, From>>,
  to: (value: From) => To,
): Record<string, To> => Object.fromEntries(Object.entries(from).map(([name, value]) => [name, to(value)]));

const schemaMessage = (block: Block): object => ({ version: 0, block: blockMessage(block) });

function blockMessage(block: Block): object {
  return {
    version: 0,
    attributes: Object.entries(block.attributes).map(([name, { type, use }]) => ({
      name,
      type: Buffer.from(JSON.stringify(type)),
      required: use === 'required',
      optional: use === 'optional',
      computed: use === 'computed' || (name === 'id' && use === 'optional'),
    })),
    block_types: Object.entries(block.blocks).map(([name, nested]) => ({
      type_name: name,
      block: blockMessage(nested.block),
      nesting: nested.nesting.toUpperCase(),
      min_items: nested.required === true ? 1 : 0,
      max_items: nested.max ?? 0,
    })),
  };
}
