//! Filters that say of an item "perhaps" or "certainly not". A filter is the private state of its key;
//! only the bytes that a command needs are read and written.
//!
//!     BF.RESERVE key error_rate capacity   OK
//!     BF.ADD key item                      1 if the item is new, 0 if it may have been there
//!     BF.EXISTS key item                   1 if the item may be there, 0 if it is not
//!
//! It is built with the SDK's feature `std`, for the vector that an empty filter is made in.

#![forbid(unsafe_code)]

use latchkey::{parse_int, Call, Error, Result, SetOptions, Type};

latchkey::plugin! {
    manifest: "../manifest.json",
    commands: {
        1 => reserve,
        2 => add,
        3 => exists,
    },
}

const ENCODING: u32 = 1;
const MAX_BITS: u64 = 8 << 20; // a filter takes 1 MiB at most
const MAX_HASHES: u64 = 64;
const DAMAGED: Error = Error::Reply("ERR the state of the filter is damaged");
const DEFAULT_RATE: f64 = 0.01;
const DEFAULT_CAPACITY: i64 = 100;

/// The state begins with this, eight bytes each, little endian; the bits follow.
struct Header {
    bits: u64,
    hashes: u64,
    capacity: u64,
    items: u64,
}

const HEADER: usize = 32;

impl Header {
    /// Sizes a filter: as many hashes as the rate can be halved, and the bits that these need.
    fn plan(rate: f64, capacity: i64) -> Result<Header> {
        let (mut hashes, mut p) = (0, 1.0);
        while p > rate && hashes < MAX_HASHES {
            hashes += 1;
            p /= 2.0;
        }
        let bits = (capacity as f64 * hashes as f64 / std::f64::consts::LN_2).ceil();
        if bits > MAX_BITS as f64 {
            return Err(Error::Reply("ERR the filter would take more than 1 MiB"));
        }
        Ok(Header { bits: (bits as u64 + 7) / 8 * 8, hashes, capacity: capacity as u64, items: 0 })
    }

    /// The filter at a key; none if there is none.
    fn read(c: &Call, key: &[u8]) -> Result<Option<Header>> {
        let mut state = [0; HEADER];
        let n = match c.read_key_state(key, 0, &mut state)? {
            Some(n) => n,
            None => return Ok(None),
        };
        let word = |i: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&state[i * 8..][..8]);
            u64::from_le_bytes(word)
        };
        let h = Header { bits: word(0), hashes: word(1), capacity: word(2), items: word(3) };
        if n < HEADER || h.bits == 0 || h.bits > MAX_BITS || h.hashes > MAX_HASHES {
            return Err(DAMAGED);
        }
        Ok(Some(h))
    }

    fn bytes(&self) -> [u8; HEADER] {
        let mut state = [0; HEADER];
        for (at, word) in state.chunks_exact_mut(8).zip([self.bits, self.hashes, self.capacity, self.items]) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        state
    }

    /// Makes a filter of this size at a key.
    fn create(&self, c: &Call, key: &[u8]) -> Result {
        let mut state = vec![0; HEADER + (self.bits / 8) as usize];
        state[..HEADER].copy_from_slice(&self.bytes());
        c.set_key_state(key, &state, ENCODING, SetOptions::default())?;
        Ok(())
    }

    /// The bits of an item: where in the state the byte is, and which of its bits.
    fn places(&self, item: &[u8]) -> impl Iterator<Item = (u32, u8)> {
        let mut a = 14695981039346656037u64; // FNV-1a
        for &ch in item {
            a = (a ^ u64::from(ch)).wrapping_mul(1099511628211);
        }
        let mut b = a; // splitmix64's finalizer makes a second hash of the first
        b = (b ^ b >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
        b = (b ^ b >> 27).wrapping_mul(0x94d049bb133111eb);
        b = b ^ b >> 31 | 1;
        let bits = self.bits;
        (0..self.hashes).map(move |i| {
            let n = a.wrapping_add(i.wrapping_mul(b)) % bits;
            (HEADER as u32 + (n / 8) as u32, 1 << (n % 8))
        })
    }
}

/// Reads a decimal number such as 0.01, .5, +1e-3 or -0. The first 15 digits count, without zeros in front;
/// the others only say where the point is. What is too large for an f64, or too near to zero, is none.
fn parse_rate(text: &[u8]) -> Option<f64> {
    let (negative, mut rest) = sign(text);
    // The rate is digits / 10^scale.
    let (mut digits, mut scale, mut read, mut point) = (0u64, 0i64, false, false);
    while let [ch, after @ ..] = rest {
        match ch {
            b'.' if !point => point = true,
            b'0'..=b'9' => {
                read = true;
                if digits < 100_000_000_000_000 {
                    digits = digits * 10 + u64::from(ch - b'0');
                    scale += i64::from(point);
                } else {
                    scale -= i64::from(!point);
                }
            }
            _ => break,
        }
        rest = after;
    }
    if !read {
        return None;
    }
    match rest {
        [] => {}
        [b'e' | b'E', exponent @ ..] => {
            let (down, figures) = sign(exponent);
            let mut exponent = 0i64;
            for ch in figures {
                if !ch.is_ascii_digit() {
                    return None;
                }
                if exponent < 1_000_000_000_000 {
                    exponent = exponent * 10 + i64::from(ch - b'0');
                }
            }
            if figures.is_empty() {
                return None;
            }
            scale += if down { exponent } else { -exponent };
        }
        _ => return None,
    }
    if digits == 0 {
        return Some(0.0);
    }
    if !(-400..=400).contains(&scale) {
        return None;
    }
    let mut rate = digits as f64;
    for _ in 0..scale {
        rate /= 10.0;
    }
    for _ in scale..0 {
        rate *= 10.0;
    }
    if rate == 0.0 || rate > f64::MAX {
        return None;
    }
    Some(if negative { -rate } else { rate })
}

/// Whether a number begins with a minus, and what comes behind its sign.
fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'+', rest @ ..] => (false, rest),
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    }
}

fn reserve(c: &Call) -> Result {
    let key = c.arg(1);
    let rate = parse_rate(c.arg(2)).ok_or(Error::Reply("ERR bad error rate"))?;
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Error::Reply("ERR (0 < error rate range < 1)"));
    }
    let capacity = parse_int(c.arg(3)).ok_or(Error::Reply("ERR bad capacity"))?;
    if capacity <= 0 {
        return Err(Error::Reply("ERR (capacity should be larger than 0)"));
    }
    match c.key_type(key)? {
        Type::None => {}
        Type::Own => return Err(Error::Reply("ERR item exists")),
        _ => return Err(Error::WrongType),
    }
    Header::plan(rate, capacity)?.create(c, key)?;
    c.reply_simple("OK");
    Ok(())
}

fn add(c: &Call) -> Result {
    let key = c.arg(1);
    let mut h = match Header::read(c, key)? {
        Some(h) => h,
        None => {
            let h = Header::plan(DEFAULT_RATE, DEFAULT_CAPACITY)?;
            h.create(c, key)?;
            h
        }
    };
    let mut fresh = false;
    for (at, bit) in h.places(c.arg(2)) {
        let mut byte = [0];
        if c.read_key_state(key, at, &mut byte)? != Some(1) {
            return Err(DAMAGED);
        }
        if byte[0] & bit != 0 {
            continue;
        }
        if !fresh && h.items >= h.capacity {
            return Err(Error::Reply("ERR the filter is full"));
        }
        fresh = true;
        c.write_key_state(key, at, &[byte[0] | bit])?;
    }
    if fresh {
        h.items += 1;
        c.write_key_state(key, 0, &h.bytes())?;
    }
    c.reply_bool(fresh);
    Ok(())
}

fn exists(c: &Call) -> Result {
    let key = c.arg(1);
    let mut found = false;
    if let Some(h) = Header::read(c, key)? {
        found = true;
        for (at, bit) in h.places(c.arg(2)) {
            let mut byte = [0];
            if c.read_key_state(key, at, &mut byte)? != Some(1) {
                return Err(DAMAGED);
            }
            if byte[0] & bit == 0 {
                found = false;
                break;
            }
        }
    }
    c.reply_bool(found);
    Ok(())
}
