/** The user asked for something that cannot be: one line, and exit code 2. */
export class OptionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'OptionError';
  }
}
