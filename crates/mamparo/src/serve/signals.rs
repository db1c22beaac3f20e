//! What tells a program to stop.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;

/// Waits for SIGTERM or ctrl-c; where there is no SIGTERM, for ctrl-c alone.
///
/// It listens from the call on, not only once it is polled. From then on these signals no longer end the program by themselves.
///
/// # Errors
///
/// The system does not let the program listen.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let termination = mamparo::serve::termination()?;
/// # drop(termination);
/// # Ok(())
/// # }
/// ```
pub fn termination() -> io::Result<impl Future<Output = ()> + Send> {
    let mut terminated = terminate()?;
    let mut interrupted = interrupt()?;
    Ok(async move {
        let mut terminated = pin!(terminated.recv());
        let mut interrupted = pin!(interrupted.recv());
        poll_fn(|cx| {
            let told =
                terminated.as_mut().poll(cx).is_ready() || interrupted.as_mut().poll(cx).is_ready();
            if told { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    })
}

#[cfg(unix)]
fn terminate() -> io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
}

#[cfg(unix)]
fn interrupt() -> io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn terminate() -> io::Result<tokio::signal::windows::CtrlShutdown> {
    tokio::signal::windows::ctrl_shutdown()
}

#[cfg(windows)]
fn interrupt() -> io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}
