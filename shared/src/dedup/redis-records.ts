/**
 * What is stored under a key in Redis, and how it is read. Short, because a completed record stays for days:
 *
 * - a claim: `2c`, owner, a space, token;
 * - a completed record, packed: a byte for the form of the message ID (1: a decimal number of up to 19 digits, in 9
 *   bytes; 2: a UUID, in 16; 3: text), the last 16 bits of the token, the first 72 bits of the fingerprint, the ID;
 * - a completed record whose fingerprint is no hash: `2d`, owner, token, fingerprint and message ID, with spaces between.
 *
 * What begins with `1` was written by a version before the first release: it is unrecognised, and stays as it is.
 *
 * Of the token there is enough to know one's own record when a completion comes twice: another's passes for it once in
 * 65,536 times, and then a warning about a stolen claim is missing. Of the fingerprint there is enough to tell data
 * apart. Packed records cost at most 60 bytes more than an empty one under so short a key; `bench` measures it.
 */

/** What `hashOf` makes. Anything else may differ at its end only, and is kept whole. */
const HASH = /^[\w-]{43}$/;
/** Of a key that is a hash: 132 bits. */
const KEY_LENGTH = 22;
/** Of a fingerprint that is one: 72 bits. */
const FINGERPRINT_LENGTH = 12;
/** Of a packed record: form, token, fingerprint. */
const HEAD_BYTES = 12;

export const recordKey = (prefix: string, key: string): string =>
  prefix + (HASH.test(key) ? key.slice(0, KEY_LENGTH) : key);

/** As the script CLAIM writes it. */
export const claimValue = (owner: string, token: string): string => `2c${owner} ${token}`;

/** A completed record, after its length in two bytes. */
export function recordOf(owner: string, token: string, fingerprint: string, messageId: string): Buffer {
  if (!HASH.test(fingerprint)) return measured(`2d${owner} ${token} ${fingerprint} ${messageId}`);
  const form = formOf(messageId);
  if (form === 3) {
    const record = measured(`${' '.repeat(HEAD_BYTES)}${messageId}`);
    head(record, form, token, fingerprint);
    return record;
  }
  const bytes = HEAD_BYTES + (form === 1 ? 9 : 16);
  const record = Buffer.allocUnsafe(2 + bytes);
  record.writeUInt16BE(bytes);
  head(record, form, token, fingerprint);
  if (form === 1) {
    record.writeUIntBE(Number(messageId.slice(0, -9)), 2 + HEAD_BYTES, 5);
    record.writeUInt32BE(Number(messageId.slice(-9)), 7 + HEAD_BYTES);
  } else {
    record.write(messageId.replaceAll('-', ''), 2 + HEAD_BYTES, 'hex');
  }
  return record;
}

function head(record: Buffer, form: number, token: string, fingerprint: string): void {
  record.writeUInt8(form, 2);
  record.writeUInt16BE(Number(token) % 65_536, 3);
  record.write(fingerprint.slice(0, FINGERPRINT_LENGTH), 5, 'base64url');
}

function measured(text: string): Buffer {
  const bytes = Buffer.byteLength(text, 'utf8');
  const record = Buffer.allocUnsafe(2 + bytes);
  record.writeUInt16BE(bytes);
  record.write(text, 2, 'utf8');
  return record;
}

function formOf(messageId: string): 1 | 2 | 3 {
  if (/^[1-9][0-9]{0,18}$/.test(messageId)) return 1;
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(messageId) ? 2 : 3;
}

/** The beginning of the fingerprint that a packed record holds. */
export const fingerprintOf = (bits: string): string => Buffer.from(bits, 'hex').toString('base64url');

/**
 * In Lua: `read` a key → 'absent' | 'unrecognised' what | 'c' owner token (of the lease left, ms) | 'd' owner
 * fingerprint ID | 'packed' value; what a packed value holds, and whether it is of a token.
 */
export const READING = `
local function read(key)
  local value = redis.pcall('GET', key)
  if not value then return 'absent' end
  if type(value) == 'table' then return 'unrecognised', 'a value of another type' end
  local left = redis.call('PTTL', key)
  if left == -1 then return 'unrecognised', 'a value without expiry' end
  left = left - LINGER
  local owner, token = string.match(value, '^2c(%S+) (%d+)$')
  if owner then return 'c', owner, token, left end
  local form, length = string.byte(value), #value
  if (form == 1 and length == 21) or (form == 2 and length == 28) or (form == 3 and length >= 12) then
    return 'packed', value
  end
  local fingerprint, id
  owner, token, fingerprint, id = string.match(value, '^2d(%S+) (%d+) (%S+) (.*)$')
  if owner then return 'd', owner, fingerprint, id end
  return 'unrecognised', 'a value in another form'
end
local function isOf(value, token)
  return struct.unpack('>I2', value, 2) == tonumber(token) % 65536
end
local function unpackedOf(value)
  local bits = string.format('%06x%06x%06x', struct.unpack('>I3I3I3', value, 4))
  local form = string.byte(value)
  if form == 1 then
    local high, low = struct.unpack('>I5I4', value, 13)
    if high == 0 then return bits, string.format('%.0f', low) end
    return bits, string.format('%.0f%09.0f', high, low)
  elseif form == 2 then
    return bits, string.format('%08x-%04x-%04x-%04x-%04x%08x', struct.unpack('>I4I2I2I2I2I4', value, 13))
  end
  return bits, string.sub(value, 13)
end
`;
