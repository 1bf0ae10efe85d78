/** The user asked for something that cannot be: one line, and exit code 2. */
export class OptionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'OptionError';
  }
}

/** What `check` throws is wrong with an option. */
export function asOption<Value>(check: () => Value): Value {
  try {
    return check();
  } catch (error) {
    throw new OptionError(error instanceof Error ? error.message : String(error));
  }
}

/** The field, or none where there is no value. */
export function given<Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): Readonly<Partial<Record<Name, Value>>> {
  const fields: Partial<Record<Name, Value>> = {};
  if (value !== undefined) fields[name] = value;
  return fields;
}
