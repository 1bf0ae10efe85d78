/**
 * The facts of Redis as a store: the instance, its secrets, and how a function reaches them; of a plan and of commands.
 */
import { type JsonObject, objectOf } from '../module.ts';
import type { Fact, Reader } from './facts.ts';
import { at, last, text } from './values.ts';

type Flag = (name: string) => string;

export const PLANNED_REDIS: Readonly<Record<string, Reader>> = {
  google_redis_instance: (values) => [
    [
      `redis ${text(values['name'])}`,
      {
        region: text(values['region']),
        tier: text(values['tier']) === 'STANDARD_HA' ? 'standard' : 'basic',
        size: text(values['memory_size_gb']),
        version: text(values['redis_version']).toLowerCase(),
        network: text(values['authorized_network']),
        connects: asFlag(values['connect_mode']),
        asksPassword: text(values['auth_enabled']),
        encrypts: asFlag(values['transit_encryption_mode']),
        evicts: text(objectOf(values['redis_configs'])['maxmemory-policy']),
      },
    ],
  ],
  google_secret_manager_secret: (values) => [[`secret ${text(values['secret_id'])}`, {}]],
  google_secret_manager_secret_version: (values) => [[`value of secret ${last(values['secret'])}`, {}]],
};

export const redisOf = (name: string, flag: Flag): readonly Fact[] => [
  [
    `redis ${name}`,
    {
      region: flag('region'),
      tier: flag('tier'),
      size: flag('size'),
      version: flag('redis-version'),
      network: flag('network'),
      connects: flag('connect-mode'),
      asksPassword: String(flag('enable-auth') === ''),
      encrypts: flag('transit-encryption-mode'),
      evicts: flag('redis-config').replace(/^maxmemory-policy=/, ''),
    },
  ],
];

/** What of it a planned function has: variables and files out of secrets, and the network that it goes out by. */
export function reachOfPlan(service: JsonObject): string {
  const variable = objectOf(at(service, 'secret_environment_variables'));
  const file = objectOf(at(service, 'secret_volumes'));
  const network = objectOf(at(service, 'direct_vpc_network_interface'));
  return reach({
    egress: asFlag(service['direct_vpc_egress']).replace(/^vpc-egress-/, ''),
    network: text(network['network']),
    subnetwork: text(network['subnetwork']),
    secrets: [
      ...(variable['key'] === undefined
        ? []
        : [`${text(variable['key'])}=${text(variable['secret'])}:${text(variable['version'])}`]),
      ...(file['mount_path'] === undefined
        ? []
        : [
            `${text(file['mount_path'])}:/${text(at(file, 'versions', 'path'))}=${text(file['secret'])}:${text(at(file, 'versions', 'version'))}`,
          ]),
    ].join(','),
  });
}

export const reachOfCommand = (flag: Flag): string =>
  reach({
    egress: flag('direct-vpc-egress'),
    network: flag('network'),
    subnetwork: flag('subnet'),
    secrets: flag('set-secrets'),
  });

const reach = (parts: Readonly<Record<string, string>>): string =>
  Object.entries(parts)
    .flatMap(([name, value]) => (value === '' ? [] : [`${name} ${value}`]))
    .join(' ');

const asFlag = (value: JsonObject[string] | undefined): string =>
  text(value).toLowerCase().replaceAll('_', '-');
