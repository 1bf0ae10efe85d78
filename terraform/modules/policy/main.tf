# Names, limits and what must fit what, without any provider: the conditions are the validations of the variables, so
# that a plan ends with a sentence that says what to set, before anything is created.

locals {
  # What memory a process has, in bytes, and how many bytes of messages fit into it at once: what a process needs
  # without any message is 160 MiB, and a byte that is in flight takes 5 at most. bytesFor of the library says the same,
  # and `npm run bench -- memory` measures it.
  memory_parts = regex("^([0-9]+)(Mi|Gi|M|G)$", var.service.memory)
  memory_bytes = tonumber(local.memory_parts[0]) * { Mi = 1048576, Gi = 1073741824, M = 1000000, G = 1000000000 }[local.memory_parts[1]]

  bytes_in_flight = coalesce(var.service.max_bytes_in_flight, floor((local.memory_bytes - 167772160) / 5))
}
