/**
 * Connections of the requests that the stack sends by itself, pushes and tasks. They go to this machine alone, unless it is
 * configured otherwise, and an idle one is closed long before a target would: Node closes after 5 s, others after 2 s. A
 * request that is sent while the target closes would fail although the target is well, and its repetition waits on a clock
 * that may stand still.
 */
import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { loopbackLookup } from './loopback.ts';

const IDLE_MS = 1_000;

/** By the protocol of a URL. The caller destroys them. */
export function sendingAgents(remoteTargets: boolean): Readonly<Record<'http:' | 'https:', Agent>> {
  // For a connection in use the limit says nothing.
  const options = { keepAlive: true, timeout: IDLE_MS, ...(!remoteTargets && { lookup: loopbackLookup }) };
  return { 'http:': new Agent(options), 'https:': new TlsAgent(options) };
}
