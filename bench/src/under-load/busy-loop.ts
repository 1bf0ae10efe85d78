/** Takes a processor for itself until the process that started it is gone, and for at most the given milliseconds. */
const endsAt = Date.now() + Number(process.argv[2] ?? 0);
const parent = process.ppid;
while (Date.now() < endsAt && process.ppid === parent);
