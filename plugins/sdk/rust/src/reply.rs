use crate::{host, Call, Error};

/// The length of an aggregate that is known when it ends only: [`Call::reply_len`] tells it then.
pub const LATER: u32 = u32::MAX;

/// Replies: each gives the reply, or the next element of an aggregate that was begun. Bytes are
/// copied. What RESP2 has no kind for it gets as Redis would send it.
impl Call<'_> {
    /// Replies a null.
    #[inline]
    pub fn reply_null(&self) {
        unsafe { host::reply_null() }
    }

    /// Replies an integer.
    #[inline]
    pub fn reply_int(&self, n: i64) {
        unsafe { host::reply_int(n) }
    }

    /// Replies a double.
    #[inline]
    pub fn reply_double(&self, f: f64) {
        unsafe { host::reply_double(f) }
    }

    /// Replies a boolean.
    #[inline]
    pub fn reply_bool(&self, b: bool) {
        unsafe { host::reply_bool(b.into()) }
    }

    /// Replies a status, such as OK. It must have no line breaks.
    #[inline]
    pub fn reply_simple(&self, text: &str) {
        unsafe { host::reply_simple(text.as_ptr(), text.len()) }
    }

    /// Replies bytes.
    #[inline]
    pub fn reply_bulk(&self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        unsafe { host::reply_bulk(bytes.as_ptr(), bytes.len()) }
    }

    /// Replies an integer of any size, in decimal digits, maybe after a minus sign.
    #[inline]
    pub fn reply_big_number(&self, digits: &str) {
        unsafe { host::reply_bignum(digits.as_ptr(), digits.len()) }
    }

    /// Replies text with a format such as `b"txt"` or `b"mkd"`.
    #[inline]
    pub fn reply_verbatim(&self, format: &[u8; 3], text: &str) {
        unsafe { host::reply_verbatim(format.as_ptr(), text.as_ptr(), text.len()) }
    }

    /// Begins an array of `n` replies, or [`LATER`].
    #[inline]
    pub fn reply_array(&self, n: u32) {
        unsafe { host::reply_array(n) }
    }

    /// Begins a map of `n` pairs, or [`LATER`]: a key and a value, 2n replies by turns.
    #[inline]
    pub fn reply_map(&self, n: u32) {
        unsafe { host::reply_map(n) }
    }

    /// Begins a set of `n` replies, or [`LATER`].
    #[inline]
    pub fn reply_set(&self, n: u32) {
        unsafe { host::reply_set(n) }
    }

    /// Ends an aggregate that was begun with [`LATER`], which has `n` elements, of a map `n` pairs.
    #[inline]
    pub fn reply_len(&self, n: u32) {
        unsafe { host::reply_len(n) }
    }

    /// Replies an error, a code word and what is wrong, which is made at run time, and is what to
    /// return then. For one that is a literal, return [`Error::Reply`].
    #[inline]
    pub fn error(&self, text: impl AsRef<[u8]>) -> Error {
        let text = text.as_ref();
        unsafe { host::reply_error(text.as_ptr(), text.len()) };
        Error::Replied
    }
}
