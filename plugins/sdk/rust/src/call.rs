use core::marker::PhantomData;

use crate::error::filled;
use crate::{host, parse_int, Error, Result};

/// An argument of a command, or bytes on their way to the host, as the ABI lays them out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Arg<'a> {
    ptr: *const u8,
    len: usize,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Arg<'a> {
    /// The bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        if self.len == 0 {
            return &[];
        }
        // It was made of a slice with this lifetime, or by the host in a frame with it.
        unsafe { core::slice::from_raw_parts(self.ptr, self.len) }
    }
}

impl<'a> From<&'a [u8]> for Arg<'a> {
    #[inline]
    fn from(bytes: &'a [u8]) -> Self {
        Arg { ptr: bytes.as_ptr(), len: bytes.len(), bytes: PhantomData }
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    #[inline]
    fn from(text: &'a str) -> Self {
        Arg::from(text.as_bytes())
    }
}

/// What stands before the arguments in a frame.
#[doc(hidden)]
#[repr(C)]
#[derive(Default)]
pub struct Frame {
    argc: u32,
    nkeys: u32,
    first_key: u32,
    db: u32,
}

/// One call of a command, or of a timer, event or wake-up: its arguments, the keys it reaches, and
/// its reply. It ends when the function that got it returns.
pub struct Call<'a> {
    args: &'a [Arg<'a>],
    frame: &'a Frame,
}

impl<'a> Call<'a> {
    /// The call that a frame is of. There must be one of `argc` arguments at the address, as the ABI
    /// has it, that nobody writes to for as long as 'a.
    #[inline]
    pub(crate) unsafe fn of(frame: *const Frame, argc: usize) -> Call<'a> {
        Call { args: core::slice::from_raw_parts(frame.add(1).cast(), argc), frame: &*frame }
    }

    /// A call without arguments.
    #[inline]
    pub(crate) fn empty(frame: &'a Frame) -> Call<'a> {
        Call { args: &[], frame }
    }

    /// The number of arguments, the command's name included.
    #[inline]
    pub fn nargs(&self) -> usize {
        self.args.len()
    }

    /// The `i`-th argument, 0 being the name.
    ///
    /// # Panics
    ///
    /// If there are not so many; the arity in the manifest says how many there are at least.
    #[inline]
    #[track_caller]
    pub fn arg(&self, i: usize) -> &'a [u8] {
        self.args[i].bytes()
    }

    /// All arguments, the name first.
    #[inline]
    pub fn args(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + 'a {
        self.args.iter().map(|a| a.bytes())
    }

    /// How many arguments are keys.
    #[inline]
    pub fn nkeys(&self) -> usize {
        self.frame.nkeys as usize
    }

    /// The index of the first key among the arguments, 0 if there is none.
    #[inline]
    pub fn first_key(&self) -> usize {
        self.frame.first_key as usize
    }

    /// The database that the call is in.
    #[inline]
    pub fn db(&self) -> u32 {
        self.frame.db
    }

    /// The `i`-th argument as an integer, as Redis reads integers: no plus, no blanks, no leading
    /// zeros. Otherwise the error has Redis's words.
    #[inline]
    pub fn int(&self, i: usize) -> Result<i64> {
        parse_int(self.arg(i)).ok_or(Error::NotInt)
    }

    /// Whether the `i`-th argument is `word`, in whatever case.
    #[inline]
    pub fn is(&self, i: usize, word: &str) -> bool {
        self.arg(i).eq_ignore_ascii_case(word.as_bytes())
    }

    /// The Unix time in milliseconds, the same throughout a call.
    #[inline]
    pub fn now_ms(&self) -> i64 {
        unsafe { host::now_ms() }
    }

    /// A fencing number: greater than every one given before.
    #[inline]
    pub fn fence(&self) -> i64 {
        unsafe { host::fence() }
    }

    /// Fills `buf` with random bytes.
    #[inline]
    pub fn random(&self, buf: &mut [u8]) {
        unsafe { host::random(buf.as_mut_ptr(), buf.len()) }
    }

    /// What is known of the client, as text; none if the call has no client.
    #[inline]
    pub fn client<'b>(&self, field: ClientField, buf: &'b mut [u8]) -> Result<Option<&'b [u8]>> {
        filled(unsafe { host::client(field as i32, buf.as_mut_ptr(), buf.len()) }, buf)
    }

    /// The client's id; none if the call has no client.
    pub fn client_id(&self) -> Option<i64> {
        let mut text = [0; 20];
        parse_int(self.client(ClientField::Id, &mut text).ok()??)
    }

    /// The present value of a parameter that the manifest declares, as text, a bool being `yes` or
    /// `no`; none if it declares none of that name.
    #[inline]
    pub fn config<'b>(&self, name: &str, buf: &'b mut [u8]) -> Result<Option<&'b [u8]>> {
        filled(unsafe { host::config_get(name.as_ptr(), name.len(), buf.as_mut_ptr(), buf.len()) }, buf)
    }

    /// As [`Call::config`], of an integer; none if the parameter is none.
    pub fn config_int(&self, name: &str) -> Option<i64> {
        let mut text = [0; 20];
        parse_int(self.config(name, &mut text).ok()??)
    }

    /// As [`Call::config`], of a bool; none if the parameter is none.
    pub fn config_bool(&self, name: &str) -> Option<bool> {
        match self.config(name, &mut [0; 3]).ok()?? {
            b"yes" => Some(true),
            b"no" => Some(false),
            _ => None,
        }
    }
}

#[cfg(feature = "std")]
impl Call<'_> {
    /// As [`Call::client`], as a string.
    pub fn client_string(&self, field: ClientField) -> Result<Option<String>> {
        let text = crate::error::owned(|buf, cap| unsafe { host::client(field as i32, buf, cap) })?;
        Ok(text.map(|t| String::from_utf8_lossy(&t).into_owned()))
    }

    /// As [`Call::config`], as a string.
    pub fn config_string(&self, name: &str) -> Result<Option<String>> {
        let text = crate::error::owned(|buf, cap| unsafe { host::config_get(name.as_ptr(), name.len(), buf, cap) })?;
        Ok(text.map(|t| String::from_utf8_lossy(&t).into_owned()))
    }
}

/// Something known of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientField {
    /// The number that CLIENT ID says.
    Id,
    /// The name that CLIENT SETNAME gave it.
    Name,
    /// The user it authenticated as.
    User,
    /// Its address and port.
    Addr,
}

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For who looks for an error.
    Debug,
    /// Worth knowing.
    Info,
    /// Something to mend.
    Warning,
}

/// Writes a line to the server's log. The host bounds how many a call may write.
#[inline]
pub fn log(level: Level, text: &str) {
    unsafe { host::log(level as i32, text.as_ptr(), text.len()) }
}
