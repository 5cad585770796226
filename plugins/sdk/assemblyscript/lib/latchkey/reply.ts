import { Buffer, Bytes } from "./bytes";
import { Code, Kind } from "./codes";
import * as host from "./host";

/**
 * What a command replied that the module has called. It lives until it is freed, or the call ends. It is no object
 * in memory: its address is the handle that the host gave.
 */
@unmanaged
export class Reply {
  @inline
  private get handle(): i32 {
    return <i32>changetype<usize>(this);
  }

  /** Code.Error or below if the command was not run, and above if it was. All else asks for a reply that is there. */
  get code(): i32 {
    return this.handle;
  }

  get kind(): Kind {
    return host.call_type(this.handle);
  }

  /** An integer, or a boolean as 1 or 0. Of another kind it traps. */
  get int(): i64 {
    return host.call_int(this.handle);
  }

  /** A double. Of another kind it traps. */
  get double(): f64 {
    return host.call_double(this.handle);
  }

  /** How many bytes a string has, elements an array or set, pairs a map; 0 for what has no length. */
  get length(): i32 {
    return max(host.call_len(this.handle), 0);
  }

  /** An element, of a map the keys at even and the values at odd indexes. Its code is Code.Nil beyond the last. */
  elem(i: u32): Reply {
    return changetype<Reply>(host.call_elem(this.handle, i));
  }

  /** Copies what a string, status, error, big number or verbatim string holds into a buffer: its length,
   *  Code.Invalid for another kind. */
  bytes(into: Buffer): i32 {
    let n: i32;
    do n = host.call_bytes(this.handle, into.ptr, into.capacity);
    while (!into.took(n));
    return n;
  }

  /** Gives the reply and its elements back before the call ends. */
  free(): void {
    host.call_free(this.handle);
  }
}
