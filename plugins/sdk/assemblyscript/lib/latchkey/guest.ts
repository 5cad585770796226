import { utf8 } from "./bytes";
import { Level } from "./codes";
import * as host from "./host";

/** The version of the ABI that this is for. */
export function lk_abi(): i32 {
  return 1;
}

let arena: usize = 0;

/** Room for frames. It is of the heap, but no object: nothing moves or collects it. */
export function lk_arena(size: u32): usize {
  // A block has 16 bytes of its own, and sizes above 1 GiB cannot be had.
  if (size > 1 << 30) return 0;
  if (arena) heap.free(arena);
  arena = heap.alloc(size);
  return arena;
}

/** Writes a line to the server's log. The host bounds how many a call may write. */
export function log(level: Level, text: string): void {
  const b = utf8(text);
  host.log(level, b.ptr, b.length);
}

// The room of abort is no Buffer: it must do before those are made, and when there is no memory left.
const room = memory.data(1024);

/** What a failed assertion and `throw` come to: a line in the log, and the end of the call. */
export function abort(message: string | null = null, file: string | null = null, line: u32 = 0, column: u32 = 0): void {
  let end = room;
  if (file) {
    end = put(end, file);
    store<u8>(end++, 0x3a);
    end = putLine(end, line);
    store<u8>(end++, 0x3a);
    store<u8>(end++, 0x20);
  }
  end = put(end, message ? message : "aborted");
  host.log(Level.Warning, room, <u32>(end - room));
  unreachable();
}

// Writes text as UTF-8, at most 160 characters, and returns where it ends: two such texts fit into the room.
function put(at: usize, text: string): usize {
  return at + String.UTF8.encodeUnsafe(changetype<usize>(text), min(text.length, 160), at);
}

function putLine(at: usize, line: u32): usize {
  let digits: usize = 1;
  for (let u = line; u >= 10; u /= 10) digits++;
  for (let i = digits; i > 0; i--) {
    store<u8>(at + i - 1, <u8>(0x30 + line % 10));
    line /= 10;
  }
  return at + digits;
}
