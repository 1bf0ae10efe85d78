/**
 * Text within a number of bytes.
 */

/** The longest beginning of `text` that has at most `maxBytes` bytes of UTF-8, never with half a character. */
export function cutText(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text.toWellFormed(), 'utf8');
  if (bytes.length <= maxBytes) return text.toWellFormed();
  let end = maxBytes;
  // 10xxxxxx continues a character: the cut goes before the byte that begins it.
  while (end > 0 && ((bytes[end] ?? 0) & 0b1100_0000) === 0b1000_0000) end -= 1;
  return bytes.toString('utf8', 0, end);
}
