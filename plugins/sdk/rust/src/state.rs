use crate::error::{check, filled};
use crate::{host, Call, Result, SetOptions};

/// State: bytes that only this plugin can read, with a number that says how they are encoded.
impl Call<'_> {
    /// The state at `key`, in `buf`, and how it is encoded; none if there is no key.
    /// [`Error::WrongType`](crate::Error::WrongType) for any other value.
    #[inline]
    pub fn key_state<'b>(&self, key: &[u8], buf: &'b mut [u8]) -> Result<Option<(&'b [u8], u32)>> {
        let mut version = 0;
        let code = unsafe { host::key_state_get(key.as_ptr(), key.len(), buf.as_mut_ptr(), buf.len(), &mut version) };
        Ok(filled(code, buf)?.map(|state| (state, version)))
    }

    /// Writes a state at `key`, as [`Call::set`] writes a string.
    #[inline]
    pub fn set_key_state(&self, key: &[u8], state: &[u8], version: u32, options: SetOptions) -> Result<bool> {
        let (flags, px) = options.packed();
        let code =
            unsafe { host::key_state_set(key.as_ptr(), key.len(), state.as_ptr(), state.len(), version, flags, px) };
        Ok(check(code)? == 1)
    }

    /// Copies a part of the state at `key` into `buf`, from `offset` on: how many bytes there were, none
    /// if there is no key.
    #[inline]
    pub fn read_key_state(&self, key: &[u8], offset: u32, buf: &mut [u8]) -> Result<Option<usize>> {
        let n = check(unsafe { host::key_state_read(key.as_ptr(), key.len(), offset, buf.as_mut_ptr(), buf.len()) })?;
        Ok(if n < 0 { None } else { Some(n as usize) })
    }

    /// Overwrites a part of the state at `key`, in place; false if there is no key.
    #[inline]
    pub fn write_key_state(&self, key: &[u8], offset: u32, part: &[u8]) -> Result<bool> {
        let code = unsafe { host::key_state_write(key.as_ptr(), key.len(), offset, part.as_ptr(), part.len()) };
        Ok(check(code)? == 1)
    }

    /// The state of the plugin, in `buf`, and how it is encoded; none if it has none yet.
    #[inline]
    pub fn state<'b>(&self, buf: &'b mut [u8]) -> Result<Option<(&'b [u8], u32)>> {
        let mut version = 0;
        let code = unsafe { host::state_get(buf.as_mut_ptr(), buf.len(), &mut version) };
        Ok(filled(code, buf)?.map(|state| (state, version)))
    }

    /// Writes the state of the plugin.
    #[inline]
    pub fn set_state(&self, state: &[u8], version: u32) -> Result {
        check(unsafe { host::state_set(state.as_ptr(), state.len(), version) })?;
        Ok(())
    }
}

#[cfg(feature = "std")]
impl Call<'_> {
    /// As [`Call::key_state`], as a vector.
    pub fn key_state_vec(&self, key: &[u8]) -> Result<Option<(Vec<u8>, u32)>> {
        let mut version = 0;
        let at: *mut u32 = &mut version;
        let state =
            crate::error::owned(|buf, cap| unsafe { host::key_state_get(key.as_ptr(), key.len(), buf, cap, at) })?;
        Ok(state.map(|s| (s, version)))
    }

    /// As [`Call::state`], as a vector.
    pub fn state_vec(&self) -> Result<Option<(Vec<u8>, u32)>> {
        let mut version = 0;
        let at: *mut u32 = &mut version;
        let state = crate::error::owned(|buf, cap| unsafe { host::state_get(buf, cap, at) })?;
        Ok(state.map(|s| (s, version)))
    }
}
