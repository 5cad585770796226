use core::fmt;

/// Reads a 64-bit integer in the one way Redis writes it: no plus, no blanks, no leading zeros.
pub fn parse_int(text: &[u8]) -> Option<i64> {
    let (digits, negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    if digits.is_empty() || digits.len() > 19 || digits[0] == b'0' && (digits.len() > 1 || negative) {
        return None;
    }
    let mut n = 0u64; // 19 digits have room
    for &ch in digits {
        if !ch.is_ascii_digit() {
            return None;
        }
        n = n * 10 + u64::from(ch - b'0');
    }
    match (negative, n) {
        (true, n) if n <= 1 << 63 => Some((n as i64).wrapping_neg()),
        (false, n) if n < 1 << 63 => Some(n as i64),
        _ => None,
    }
}

/// Writes an integer in decimal into `buf`, and returns the part of it that it took.
pub fn format_int(n: i64, buf: &mut [u8; 20]) -> &[u8] {
    let mut rest = n.unsigned_abs();
    let mut at = buf.len();
    loop {
        at -= 1;
        buf[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if n < 0 {
        at -= 1;
        buf[at] = b'-';
    }
    &buf[at..]
}

/// Text of at most `N` bytes that `write!` can write to, where there is no heap. What has no room is left
/// out, and is an error of `write!`.
pub struct Text<const N: usize> {
    buf: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    /// An empty one.
    pub fn new() -> Self {
        Text { buf: [0; N], len: 0 }
    }

    /// What was written.
    pub fn as_str(&self) -> &str {
        // Only whole characters are written.
        unsafe { core::str::from_utf8_unchecked(&self.buf[..self.len]) }
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Text::new()
    }
}

impl<const N: usize> AsRef<[u8]> for Text<N> {
    fn as_ref(&self) -> &[u8] {
        &self.buf[..self.len]
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let mut n = s.len().min(N - self.len);
        while !s.is_char_boundary(n) {
            n -= 1;
        }
        self.buf[self.len..self.len + n].copy_from_slice(&s.as_bytes()[..n]);
        self.len += n;
        if n < s.len() {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write;

    #[test]
    fn integers_are_read_as_redis_writes_them() {
        for n in [0, 1, -1, 9, 10, -10, i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1] {
            let mut buf = [0; 20];
            let text = format_int(n, &mut buf);
            assert_eq!(text, n.to_string().as_bytes());
            assert_eq!(parse_int(text), Some(n));
        }
        for text in [
            "",
            "-",
            "+1",
            "-0",
            "00",
            "01",
            " 1",
            "1 ",
            "1.0",
            "0x1",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "--1",
            "1\0",
        ] {
            assert_eq!(parse_int(text.as_bytes()), None, "{:?}", text);
        }
    }

    #[test]
    fn text_keeps_whole_characters() {
        let mut text = Text::<6>::new();
        assert!(write!(text, "{}", 1234).is_ok());
        assert!(write!(text, "5€").is_err());
        assert_eq!(text.as_str(), "12345");
        assert!(text.write_str("6").is_ok());
        assert!(text.write_str("7").is_err());
        assert_eq!(text.as_ref(), b"123456");
    }
}
