//! A plugin that calls what the examples do not, and no use otherwise. It is built twice, without and with
//! the feature `std`, and answers trial.transcript alike.

#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

use core::fmt::Write;

use latchkey::{
    Call, ClientField, Comparison, Error, EventClass, Kind, Level, Result, SetOptions, Text, Ttl, Type, Value, Woken,
};

latchkey::plugin! {
    manifest: "manifest.json",
    init: || Ok(()),
    commands: {
        1 => keys,
        2 => run,
        3 => state,
        4 => reply,
        5 => fail,
        6 => about,
        7 => later,
        8 => |c: &Call| c.block([c.arg(1).into()], c.int(2)?, 42),
        9 => |c: &Call| {
            c.wake_key(c.arg(1))?;
            c.reply_null();
            Ok(())
        },
    },
    wake: wake,
    timer: |c: &Call, token: i64| {
        assert_eq!(c.nargs(), 0);
        c.incr_by(b"timer", token).map(|_| ())
    },
    event: |c: &Call, class: EventClass, event: &[u8], key: &[u8]| {
        if class == EventClass::String && key == b"watched" {
            c.set(b"seen", event, SetOptions::default())?;
        }
        Ok(())
    },
    closed: |c: &Call, key: &[u8], token: i64| c.set(key, b"closed", SetOptions::px(token)).map(|_| ()),
}

/// Each step with what it must answer: a panic names the line.
fn keys(c: &Call) -> Result {
    let key = c.arg(1);
    assert_eq!((c.nkeys(), c.first_key(), c.db(), c.args().len()), (1, 1, 0, 2));
    let mut buf = [0; 4];
    assert_eq!(c.get(key, &mut buf), Ok(None));
    assert_eq!(c.pttl(key), Ok(Ttl::Missing));
    assert_eq!(c.key_type(key), Ok(Type::None));
    assert_eq!(c.set(key, b"abcd", SetOptions { xx: true, ..SetOptions::default() }), Ok(false));
    assert_eq!(c.set(key, b"abcd", SetOptions { nx: true, px: 90_000, ..SetOptions::default() }), Ok(true));
    assert_eq!(c.set(key, b"abcd", SetOptions { nx: true, xx: true, ..SetOptions::default() }), Err(Error::Invalid));
    assert_eq!(c.get(key, &mut buf), Ok(Some(&b"abcd"[..])));
    assert_eq!(c.pttl(key), Ok(Ttl::Millis(90_000)));
    assert_eq!(c.set(key, b"abcde", SetOptions { keep_ttl: true, ..SetOptions::default() }), Ok(true));
    assert_eq!(c.pttl(key), Ok(Ttl::Millis(90_000)));
    assert_eq!(c.get(key, &mut buf), Err(Error::TooLong(5)));
    assert_eq!(c.incr_by(key, 1), Err(Error::NotInt));
    assert_eq!(c.set(key, b"41", SetOptions { px_at: c.now_ms() + 50_000, ..SetOptions::default() }), Ok(true));
    assert_eq!(c.pttl(key), Ok(Ttl::Millis(50_000)));
    assert_eq!(c.incr_by(key, 1), Ok(42));
    assert_eq!(c.pexpire(key, 0), Ok(true));
    assert_eq!(c.pttl(key).map(Ttl::as_pttl), Ok(-1));
    assert_eq!(c.compare_and_set(key, b"41", b"1", 0), Ok(Comparison::Different));
    assert_eq!(c.compare_and_delete_args(1, 0), Ok(Comparison::Different));
    assert_eq!(c.compare_and_delete(key, b"42"), Ok(Comparison::Equal));
    assert_eq!(c.compare_and_delete_args(1, 1), Ok(Comparison::Missing));
    assert_eq!(c.compare_and_delete(key, b"42"), Ok(Comparison::Missing));
    assert_eq!(c.exists(key), Ok(false));
    assert_eq!(c.pexpire(key, 1), Ok(false));
    assert_eq!(c.del(key), Ok(false));
    assert_eq!(c.get(b"not declared", &mut buf), Err(Error::Denied));
    assert_eq!(c.set(key, &[b'x'; 100], SetOptions::default()), Ok(true));
    assert_eq!(c.notify("trial", key), Ok(()));
    assert_eq!(c.notify("", key), Err(Error::Invalid));
    #[cfg(feature = "std")]
    {
        assert_eq!(c.get_vec(key), Ok(Some(vec![b'x'; 100])));
        assert_eq!(c.set(key, b"", SetOptions::default()), Ok(true));
        assert_eq!(c.get_vec(key), Ok(Some(vec![])));
        assert_eq!(c.del(key), Ok(true));
        assert_eq!(c.get_vec(key), Ok(None));
        assert_eq!(c.get_vec(b"not declared"), Err(Error::Denied));
    }
    let (mut a, mut b) = ([0; 16], [0; 16]);
    c.random(&mut a);
    c.random(&mut b);
    assert_ne!(a, b);
    assert!(c.fence() < c.fence());
    c.reply_simple("OK");
    Ok(())
}

/// Runs the command of its arguments from the second on, with the key put behind its name.
fn run(c: &Call) -> Result {
    let name = c.arg(2);
    let mut args = [name.into(), c.arg(1).into(), "".into(), "".into()];
    for (to, from) in args[2..].iter_mut().zip(c.args().skip(3)) {
        *to = from.into();
    }
    let reply = c.run(&args[..c.nargs() - 1])?.ok()?;
    pass(c, &reply)
}

/// Replies a value.
fn pass(c: &Call, v: &Value) -> Result {
    match v.kind() {
        Kind::Int => c.reply_int(v.int().unwrap()),
        Kind::Array | Kind::Map => {
            assert_eq!((v.int(), v.double(), v.bytes(&mut [])), (None, None, Ok(None)));
            let mut n = 0;
            c.reply_array(latchkey::LATER);
            while let Some(e) = v.elem(n) {
                pass(c, &e)?;
                n += 1;
            }
            assert_eq!(n, if v.kind() == Kind::Map { v.len() * 2 } else { v.len() });
            c.reply_len(n as u32);
        }
        Kind::Bulk => {
            let mut buf = [0; 100];
            let bytes = v.bytes(&mut buf)?.unwrap();
            assert_eq!((bytes.len(), bytes.is_empty()), (v.len(), v.is_empty()));
            #[cfg(feature = "std")]
            assert_eq!(v.to_vec().unwrap(), bytes);
            c.reply_bulk(bytes);
        }
        Kind::Null => c.reply_null(),
        other => panic!("a {:?}", other),
    }
    Ok(())
}

/// Writes the states of a key and of the module, and reads them.
fn state(c: &Call) -> Result {
    let (key, text) = (c.arg(1), c.arg(2));
    let mut buf = [0; 8];
    assert_eq!(c.key_state(key, &mut buf), Ok(None));
    assert_eq!(c.read_key_state(key, 0, &mut buf), Ok(None));
    assert_eq!(c.write_key_state(key, 0, b"x"), Ok(false));
    assert_eq!(c.state(&mut buf), Ok(None));
    assert_eq!(c.set_key_state(key, text, 3, SetOptions::px(1000)), Ok(true));
    assert_eq!(c.key_type(key), Ok(Type::Own));
    assert_eq!(c.key_state(key, &mut buf), Ok(Some((text, 3))));
    assert_eq!(c.write_key_state(key, 1, b"__"), Ok(true));
    assert_eq!(c.write_key_state(key, text.len() as u32, b"_"), Err(Error::Invalid));
    assert_eq!(c.read_key_state(key, 1, &mut buf), Ok(Some(text.len() - 1)));
    assert_eq!(c.key_state(key, &mut buf[..2]), Err(Error::TooLong(text.len())));
    c.set_state(text, 4)?;
    assert_eq!(c.state(&mut buf), Ok(Some((text, 4))));
    #[cfg(feature = "std")]
    {
        assert_eq!(c.state_vec(), Ok(Some((text.to_vec(), 4))));
        assert_eq!(c.key_state_vec(key).unwrap().unwrap().0[1..3], *b"__");
        assert_eq!(c.key_state_vec(b"not declared"), Err(Error::Denied));
    }
    c.reply_bulk(c.key_state(key, &mut buf)?.unwrap().0);
    Ok(())
}

fn reply(c: &Call) -> Result {
    c.reply_array(9);
    c.reply_null();
    c.reply_int(i64::MIN);
    c.reply_double(1.5);
    c.reply_bool(true);
    c.reply_simple("fine");
    c.reply_bulk(b"\x00\xff");
    c.reply_big_number("-123456789012345678901234567890");
    c.reply_verbatim(b"txt", "some");
    c.reply_map(1);
    c.reply_bulk("k");
    c.reply_set(1);
    c.reply_bulk("v");
    Ok(())
}

/// Writes the key, and fails in the way that the second argument says.
fn fail(c: &Call) -> Result {
    c.set(c.arg(1), b"written", SetOptions::default())?;
    Err(match c.arg(2) {
        b"literal" => Error::Reply("TRIAL failed"),
        b"text" => {
            let mut text = Text::<40>::new();
            let _ = write!(text, "TRIAL {} arguments", c.nargs());
            c.error(text)
        }
        b"long" => c.get(c.arg(1), &mut []).unwrap_err(),
        b"oom" => Error::OutOfMemory,
        b"limit" => Error::Limit,
        b"context" => Error::Context,
        b"denied" => Error::Denied,
        b"index" => Error::Reply(if c.arg(c.nargs()).is_empty() { "none" } else { "some" }),
        _ => panic!("what is {:?}?", core::str::from_utf8(c.arg(2))),
    })
}

/// What is known of the client, and the configuration.
fn about(c: &Call) -> Result {
    let mut buf = [0; 64];
    assert_eq!(c.config_int("number"), Some(7));
    assert_eq!(c.config_int("text"), None);
    assert_eq!(c.config_bool("flag"), Some(true));
    assert_eq!(c.config_bool("number"), None);
    assert_eq!(c.config("none", &mut buf), Ok(None));
    assert_eq!(c.config("text", &mut buf[..3]), Err(Error::TooLong(9)));
    #[cfg(feature = "std")]
    {
        assert_eq!(c.config_string("text").unwrap().unwrap(), "some text");
        assert_eq!(c.config_string("none"), Ok(None));
        assert_eq!(c.client_string(ClientField::User).unwrap().unwrap(), "default");
    }
    latchkey::log(Level::Debug, "about");
    c.reply_array(4);
    c.reply_int(c.client_id().unwrap());
    for field in [ClientField::Name, ClientField::User] {
        c.reply_bulk(c.client(field, &mut buf)?.unwrap());
    }
    c.reply_bulk(c.config("text", &mut buf)?.unwrap());
    Ok(())
}

/// Sets a timer, cancels another, and binds the client to the key.
fn later(c: &Call) -> Result {
    c.set_timer(c.int(2)?, 5)?;
    assert_eq!(c.set_timer(-1, 5), Err(Error::Invalid));
    assert_eq!(c.cancel_timer(1 << 40), Ok(false));
    c.bind_client(c.arg(1), 60_000)?;
    c.unbind_client(c.arg(1))?;
    c.bind_client(c.arg(1), 70_000)?;
    c.reply_null();
    Ok(())
}

fn wake(c: &Call, token: i64, timeout: bool) -> Result<Woken> {
    assert!(token == 42 && c.is(0, "trial.wait"));
    let mut buf = [0; 100];
    match c.get(c.arg(1), &mut buf)? {
        Some(value) => c.reply_bulk(value),
        None if timeout => c.reply_simple("TIMEOUT"),
        None => return Ok(Woken::Again),
    }
    Ok(Woken::Done)
}
