/**
 * The claim protocol as Redis scripts, on the server's clock, so that no two owners ever see a key free. Each takes any
 * number of keys, treats each by itself, and answers for each; on a cluster it is given one at a time.
 *
 * Each may run twice or late, as a client that reconnects sends again what was not answered: a claim of one's own is
 * taken over as it is, a late renewal never touches a completed record, a release deletes nothing but one's own claim.
 * A value without expiry, of another type or in a form that redis-records.ts does not know is unrecognised and stays as
 * it is.
 *
 * A claim's key outlives its lease by LINGER_MS: a claim with no more than that to live has run out, and may be taken.
 * So the delivery that takes it can tell that a death came before, at the price of nothing: no field, no command, no reply
 * more.
 */
import { createHash } from 'node:crypto';
import { READING } from './redis-records.ts';

export type Script = Readonly<{ name: string; source: string; sha: string }>;

/**
 * Longer than the longest pause between two deliveries (600 s: https://cloud.google.com/pubsub/docs/handling-failures).
 * All workers on one Redis must have the same: it is part of the format.
 */
export const LINGER_MS = 900_000;

/**
 * Lease in ms, 1 if it may take over; for each key: owner
 * → token | recovered token | adopted token | busy ms | done form fingerprint ID | unrecognised what
 */
export const CLAIM = script(
  'claim',
  2,
  `
local lease, mayTakeOver = ARGV[1] + LINGER, ARGV[2] == '1'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local fresh = ' ' .. string.format('%.0f', now)
local function one(key, me)
  local value = '2c' .. me .. fresh
  if redis.call('SET', key, value, 'NX', 'PX', lease) then return now end
  local state, owner, token, left = read(key)
  if state == 'unrecognised' then return {'unrecognised', owner} end
  if state == 'd' then return {'done', 'whole', token, left} end
  if state == 'packed' then return {'done', 'packed', unpackedOf(owner)} end
  if left > 0 and owner == me then return {'adopted', token} end
  if left > 0 then return {'busy', tostring(left)} end
  if owner ~= me and not mayTakeOver then return {'busy', '0'} end
  local next = math.max(now, tonumber(token) + 1)
  redis.call('SET', key, '2c' .. me .. ' ' .. string.format('%.0f', next), 'PX', lease)
  if owner == me then return next end
  return {'recovered', string.format('%.0f', next)}
end
`,
);

/** Lease in ms; for each key: owner → 1 (renewed) | 0 (lost) */
export const RENEW = script(
  'renew',
  1,
  `
local lease = ARGV[1] + LINGER
local function one(key, me)
  local state, owner, _, left = read(key)
  if state ~= 'c' or owner ~= me or left <= 0 then return 0 end
  redis.call('PEXPIRE', key, lease)
  return 1
end
`,
);

/**
 * Retention in ms, all records (each after its length in two bytes); for each key: its claim as it was written
 * → 1 (completed) | 0 (stolen)
 */
export const COMPLETE = script(
  'complete',
  2,
  `
local retention, records, at = ARGV[1], ARGV[2], 1
local function one(key, claim)
  local length = struct.unpack('>I2', records, at)
  local record = string.sub(records, at + 2, at + 1 + length)
  at = at + 2 + length
  if redis.pcall('GET', key) ~= claim then
    local me, mine = string.match(claim, '^2c(%S+) (%d+)$')
    local state, owner, _, left = read(key)
    if state == 'd' then return owner == me and 1 or 0 end
    if state == 'packed' then return isOf(owner, mine) and 1 or 0 end
    if state == 'unrecognised' or (state == 'c' and owner ~= me and left > 0) then return 0 end
  end
  redis.call('SET', key, record, 'PX', retention)
  return 1
end
`,
);

/** For each key: owner → 1 */
export const RELEASE = script(
  'release',
  0,
  `
local function one(key, me)
  local state, owner = read(key)
  if state == 'c' and owner == me then redis.call('DEL', key) end
  return 1
end
`,
);

/** `body` defines what is done with one key and its argument; `shared` arguments come before those of the keys. */
function script(name: string, shared: number, body: string): Script {
  const source = `local LINGER = ${LINGER_MS}
${READING}${body}
local answers = {}
for i, key in ipairs(KEYS) do answers[i] = one(key, ARGV[${shared} + i]) end
return answers
`;
  return { name, source, sha: createHash('sha1').update(source).digest('hex') };
}
