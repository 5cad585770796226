use core::marker::PhantomData;
use core::ops::Deref;

use crate::error::{check, filled};
use crate::{host, Arg, Call, Error, Result};

/// The kind of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A null.
    Null,
    /// An integer.
    Int,
    /// A string of any bytes.
    Bulk,
    /// A status.
    Simple,
    /// An error.
    Error,
    /// An array.
    Array,
    /// A map.
    Map,
    /// A set.
    Set,
    /// A double.
    Double,
    /// A boolean.
    Bool,
    /// An integer of any size, as its digits.
    BigNumber,
    /// Text with a format.
    Verbatim,
}

impl Kind {
    #[inline]
    fn of(code: i32) -> Kind {
        match code {
            1 => Kind::Int,
            2 => Kind::Bulk,
            3 => Kind::Simple,
            4 => Kind::Error,
            5 => Kind::Array,
            6 => Kind::Map,
            7 => Kind::Set,
            8 => Kind::Double,
            9 => Kind::Bool,
            10 => Kind::BigNumber,
            11 => Kind::Verbatim,
            _ => Kind::Null,
        }
    }
}

/// What a command replied that the plugin has called, or an element of it.
pub struct Value<'r> {
    handle: i32,
    kind: Kind,
    reply: PhantomData<&'r ()>,
}

impl Value<'_> {
    #[inline]
    fn of(handle: i32) -> Self {
        Value { handle, kind: Kind::of(unsafe { host::call_type(handle) }), reply: PhantomData }
    }

    /// The kind.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// An integer, or a boolean as 1 or 0; none of another kind.
    #[inline]
    pub fn int(&self) -> Option<i64> {
        match self.kind {
            Kind::Int | Kind::Bool => Some(unsafe { host::call_int(self.handle) }),
            _ => None,
        }
    }

    /// A double; none of another kind.
    #[inline]
    pub fn double(&self) -> Option<f64> {
        match self.kind {
            Kind::Double => Some(unsafe { host::call_double(self.handle) }),
            _ => None,
        }
    }

    /// How many bytes a string has, elements an array or set, pairs a map; 0 for what has no length.
    #[inline]
    pub fn len(&self) -> usize {
        unsafe { host::call_len(self.handle) }.max(0) as usize
    }

    /// Whether [`Value::len`] is 0.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An element, of a map the keys at even and the values at odd indexes; none beyond the last.
    #[inline]
    pub fn elem(&self, i: usize) -> Option<Value<'_>> {
        match unsafe { host::call_elem(self.handle, i) } {
            handle if handle > 0 => Some(Value::of(handle)),
            _ => None,
        }
    }

    /// What a string, status, error, big number or verbatim string holds, in `buf`; none of another
    /// kind.
    #[inline]
    pub fn bytes<'b>(&self, buf: &'b mut [u8]) -> Result<Option<&'b [u8]>> {
        match unsafe { host::call_bytes(self.handle, buf.as_mut_ptr(), buf.len()) } {
            code if Err(Error::Invalid) == check(code) => Ok(None),
            code => filled(code, buf),
        }
    }

    /// As [`Value::bytes`], as a vector; none of another kind.
    #[cfg(feature = "std")]
    pub fn to_vec(&self) -> Option<Vec<u8>> {
        crate::error::owned(|buf, cap| unsafe { host::call_bytes(self.handle, buf, cap) }).ok()?
    }
}

/// The reply of a command that the plugin has called: a [`Value`] that is freed when it is dropped.
pub struct Reply<'c> {
    value: Value<'c>,
}

impl<'c> Reply<'c> {
    /// The reply, unless it is an error, which is replied to the client then. Of its text 512 bytes
    /// are kept.
    pub fn ok(self) -> Result<Reply<'c>> {
        if self.kind() != Kind::Error {
            return Ok(self);
        }
        let mut text = [0; 512];
        let text = match self.bytes(&mut text) {
            Ok(Some(text)) => text,
            _ => b"ERR the called command failed with a long error",
        };
        unsafe { host::reply_error(text.as_ptr(), text.len()) };
        Err(Error::Replied)
    }
}

impl<'c> Deref for Reply<'c> {
    type Target = Value<'c>;

    #[inline]
    fn deref(&self) -> &Value<'c> {
        &self.value
    }
}

impl Drop for Reply<'_> {
    #[inline]
    fn drop(&mut self) {
        unsafe { host::call_free(self.value.handle) }
    }
}

impl Call<'_> {
    /// Runs a command that the plugin may call, on keys that its own command declares:
    /// `c.run(["INCRBY".into(), key.into(), b"5"[..].into()])`. An error reply is a reply, which
    /// [`Reply::ok`] tells; an error is returned when the command was not run.
    #[inline]
    pub fn run<'b>(&self, args: impl AsRef<[Arg<'b>]>) -> Result<Reply<'_>> {
        let args = args.as_ref();
        let handle = check(unsafe { host::call(args.as_ptr(), args.len()) })?;
        Ok(Reply { value: Value::of(handle) })
    }
}
