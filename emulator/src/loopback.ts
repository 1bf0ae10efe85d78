/**
 * The addresses of this machine itself. What the stack sends on its own, pushes and tasks, goes to these alone unless it
 * is configured otherwise: a client that may publish or create a task could use it to reach what the machine reaches. The name
 * is judged by what it resolves to when the connection is made.
 */
import { lookup, type LookupAddress } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');
LOOPBACK.addSubnet('::ffff:127.0.0.0', 104, 'ipv6');

const isLoopback = (address: string): boolean =>
  LOOPBACK.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** Why nothing is sent there, where that shows without a look at names. */
export function remoteTarget({ hostname }: URL): string | undefined {
  const address = hostname.replace(/^\[|\]$/g, '');
  return isIP(address) === 0 || isLoopback(address) ? undefined : refusal(hostname);
}

/** Resolves a name, and fails where one of its addresses is not this machine's own. */
export const loopbackLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
    if (error !== null) return callback(error, []);
    const other = addresses.find(({ address }) => !isLoopback(address));
    if (other !== undefined) return callback(new Error(refusal(`${hostname} (${other.address})`)), []);
    const [first] = addresses;
    if (options.all || first === undefined) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
};

const refusal = (host: string): string =>
  `${host} is not an address of this machine; accepted: localhost, 127.0.0.1, [::1], and any with --remote-targets (remoteTargets: true)`;
