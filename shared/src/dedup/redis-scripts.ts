/**
 * The claim protocol as Redis scripts: one key and one round trip each, on the server's clock, so that they run on a
 * cluster and no two owners ever see the key free.
 *
 * Each may run twice or late, as a client that reconnects sends again what was not answered: a claim of one's own is
 * taken over as it is, a late renewal never touches a completed record, a release deletes nothing but one's own claim.
 * A value is `1`, the state (`c` or `d`), then owner, token and fingerprint separated by spaces, then the message ID.
 * A value without expiry, of another type or in another form is foreign and stays as it is.
 */
import { createHash } from 'node:crypto';

export type Script = Readonly<{ source: string; sha: string }>;

/** Defines `state`, `owner`, `token`, `fingerprint`, `messageId`: state is `absent`, `foreign`, `c` or `d`. */
const READ = `
local key = KEYS[1]
local state, owner, token, fingerprint, messageId = 'absent', '', '', '', ''
local value = redis.pcall('GET', key)
if type(value) == 'table' then
  state, messageId = 'foreign', 'a value of another type'
elseif value then
  if redis.call('PTTL', key) == -1 then
    state, messageId = 'foreign', 'a value without expiry'
  else
    state, owner, token, fingerprint, messageId = string.match(value, '^1([cd])(%S+) (%d+) (%S+) (.*)$')
    if not state then state, messageId = 'foreign', 'a value in another form' end
  end
end
`;

/** owner, fingerprint, lease in ms, message ID → claimed token | adopted token | busy ms | done fingerprint ID | foreign what */
export const CLAIM = script(`${READ}
if state == 'absent' then
  local time = redis.call('TIME')
  token = time[1] .. string.format('%06d', time[2])
  redis.call('SET', key, '1c' .. ARGV[1] .. ' ' .. token .. ' ' .. ARGV[2] .. ' ' .. ARGV[4], 'PX', ARGV[3])
  return {'claimed', token}
end
if state == 'foreign' then return {'foreign', messageId} end
if state == 'd' then return {'done', fingerprint, messageId} end
if owner == ARGV[1] then return {'adopted', token} end
return {'busy', tostring(redis.call('PTTL', key))}
`);

/** owner, lease in ms → renewed | lost */
export const RENEW = script(`${READ}
if state == 'c' and owner == ARGV[1] then
  redis.call('PEXPIRE', key, ARGV[2])
  return 'renewed'
end
return 'lost'
`);

/** owner, fingerprint, retention in ms, message ID, token → completed | stolen */
export const COMPLETE = script(`${READ}
if state == 'd' and owner == ARGV[1] then return 'completed' end
if state == 'absent' or (state == 'c' and owner == ARGV[1]) then
  local done = '1d' .. ARGV[1] .. ' ' .. ARGV[5] .. ' ' .. ARGV[2] .. ' ' .. ARGV[4]
  redis.call('SET', key, done, 'PX', ARGV[3])
  return 'completed'
end
return 'stolen'
`);

/** owner → released */
export const RELEASE = script(`${READ}
if state == 'c' and owner == ARGV[1] then redis.call('DEL', key) end
return 'released'
`);

function script(source: string): Script {
  return { source, sha: createHash('sha1').update(source).digest('hex') };
}
