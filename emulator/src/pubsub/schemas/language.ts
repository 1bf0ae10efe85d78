/**
 * What a language of schemas must do for the server: read a definition, judge messages by it, and say whether a revision
 * may follow another one. Everything here is pure: a definition always gives the same judgement.
 */
export type SchemaType = 'AVRO' | 'PROTOCOL_BUFFER';
export type Encoding = 'JSON' | 'BINARY';

export type Judge = Readonly<{
  /** Undefined where the data fit the schema; otherwise a phrase that says what does not. Never throws. */
  violation(encoding: Encoding, data: Buffer): string | undefined;
}>;

export type Language = Readonly<{
  /** Throws an error that says in a phrase why the definition is none. */
  parse(definition: string): Judge;
  /**
   * Undefined where messages of each definition can be read by the other one; otherwise a sentence that names what stands
   * against it. Both definitions have passed `parse`.
   */
  conflict(newer: string, older: string): string | undefined;
}>;
