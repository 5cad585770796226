// What commands work with. All of it is unmanaged: plain memory that nobody moves and nobody collects.

/** Bytes somewhere in memory: an argument, or what a Buffer holds. The layout is that of the ABI's frames. */
@unmanaged
export class Bytes {
  ptr: usize = 0;
  length: u32 = 0;

  /** The bytes of text in UTF-8. They are never freed: for constants at the top level. */
  static of(text: string): Bytes {
    return new Buffer(0).setText(text);
  }

  /** The byte at i. */
  @operator("[]")
  at(i: u32): u8 {
    assert(i < this.length, "the index is beyond the last byte");
    return load<u8>(this.ptr + i);
  }

  equals(other: Bytes): bool {
    return this.length == other.length && memory.compare(this.ptr, other.ptr, this.length) == 0;
  }

  /** Whether these are word, which is in lower case and ASCII, in whatever case. */
  is(word: string): bool {
    const n = this.length;
    if (n != <u32>word.length) return false;
    for (let i: u32 = 0; i < n; i++) {
      let ch = <u32>load<u8>(this.ptr + i);
      if (ch - 0x41 < 26) ch += 0x20;
      if (ch != <u32>load<u16>(changetype<usize>(word) + (<usize>i << 1))) return false;
    }
    return true;
  }

  /** Those from i on: a view, which the next call of from changes. */
  from(i: u32): Bytes {
    assert(i <= this.length, "the index is beyond the end");
    rest.ptr = this.ptr + i;
    rest.length = this.length - i;
    return rest;
  }

  /** A string of these bytes, which are UTF-8. It is collected when nothing refers to it. */
  toString(): string {
    return String.UTF8.decodeUnsafe(this.ptr, this.length);
  }
}

/** Room for bytes, which grows as needed and is used again and again. */
@unmanaged
export class Buffer extends Bytes {
  /** How many bytes there is room for. */
  capacity: u32 = 0;
  /** The encoding of the state that was read into it. */
  version: u32 = 0;

  constructor(capacity: u32) {
    super();
    this.ptr = 0;
    this.length = 0;
    this.capacity = 0;
    this.version = 0;
    this.reserve(capacity);
  }

  /** Makes room for n bytes. What the buffer holds stays, but may move. */
  reserve(n: u32): void {
    if (n <= this.capacity) return;
    this.ptr = regrow(this.ptr, n);
    this.capacity = n;
  }

  /** Makes it n bytes long. Those beyond what it held have any value. */
  resize(n: u32): Buffer {
    this.reserve(n);
    this.length = n;
    return this;
  }

  @operator("[]=")
  put(i: u32, b: u8): void {
    assert(i < this.length, "the index is beyond the last byte");
    store<u8>(this.ptr + i, b);
  }

  /** Gives the room back; the buffer can be used again. */
  free(): void {
    if (this.ptr) heap.free(this.ptr);
    this.ptr = 0;
    this.length = 0;
    this.capacity = 0;
  }

  /** Makes it text, in UTF-8. */
  setText(text: string): Buffer {
    this.reserve(<u32>text.length * 3);
    this.length = <u32>String.UTF8.encodeUnsafe(changetype<usize>(text), text.length, this.ptr);
    return this;
  }

  /** Makes it n, in decimal. */
  setInt(n: i64): Buffer {
    this.reserve(20);
    let left = <u64>(n < 0 ? -n : n);
    let digits: u32 = n < 0 ? 2 : 1;
    for (let u = left; u >= 10; u /= 10) digits++;
    if (n < 0) store<u8>(this.ptr, 0x2d);
    let at = this.ptr + digits;
    do {
      store<u8>(--at, 0x30 + <u8>(left % 10));
      left /= 10;
    } while (left != 0);
    this.length = digits;
    return this;
  }

  /** Takes note of what a host function answered that copies into a buffer: a length, which may be more than
   *  there is room for, in which case nothing was copied and the function is to be asked again. */
  @inline
  took(n: i32): bool {
    if (n > <i32>this.capacity) {
      this.reserve(n);
      return false;
    }
    this.length = n > 0 ? n : 0;
    return true;
  }
}

/** An integer that a function fills in. */
@unmanaged
export class Integer {
  value: i64 = 0;

  /** Reads an integer in the one way Redis writes it: no plus, no blanks, no leading zeros. False if it is none. */
  parse(b: Bytes): bool {
    let at = b.ptr;
    const end = at + b.length;
    const negative = b.length > 0 && load<u8>(at) == 0x2d;
    if (negative) at++;
    const digits = end - at;
    if (digits == 0 || digits > 19 || (load<u8>(at) == 0x30 && (digits > 1 || negative))) return false;
    let n: u64 = 0;
    for (; at < end; at++) {
      const digit = <u32>load<u8>(at) - 0x30;
      if (digit > 9) return false;
      n = n * 10 + digit;
    }
    if (n > <u64>i64.MAX_VALUE + u64(negative)) return false;
    this.value = negative ? -(<i64>n) : <i64>n;
    return true;
  }
}

/** A list of Bytes, such as the words of a command to call. */
@unmanaged
export class Args {
  frame: usize = 0;
  length: u32 = 0;
  private capacity: u32 = 0;

  clear(): Args {
    this.length = 0;
    return this;
  }

  /** Adds b, which must stay as it is until the list is used. */
  add(b: Bytes): Args {
    if (this.length == this.capacity) {
      this.capacity = this.capacity ? this.capacity * 2 : 8;
      this.frame = regrow(this.frame, this.capacity << 3);
    }
    const at = this.frame + (this.length++ << 3);
    store<u32>(at, <u32>b.ptr);
    store<u32>(at, b.length, 4);
    return this;
  }
}

// heap.realloc does not take 0.
function regrow(block: usize, size: u32): usize {
  return block ? heap.realloc(block, size) : heap.alloc(size);
}

/** text as UTF-8, for one host function. */
export function utf8(text: string): Bytes {
  return scratch.setText(text);
}

const rest = new Bytes();
const scratch = new Buffer(256);
