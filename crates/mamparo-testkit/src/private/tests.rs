use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::programs::{Account, find};
use super::{PrivateMoto, PrivatePostgres, PrivateRabbit, PrivateRedis};

/// Asks for TLS, which it refuses with one byte: enough to know a PostgreSQL by.
fn answers(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).unwrap();
    let mut answer = [0];
    stream
        .read_exact(&mut answer)
        .is_ok_and(|()| answer == *b"N")
}

#[tokio::test]
async fn a_server_answers_until_it_is_stopped_and_again_after_a_restart() {
    let server = PrivatePostgres::start().await;
    let (address, process) = (server.address(), server.process());
    assert!(answers(address));
    server.stop().await;
    assert!(!answers(address));
    server.restart().await;
    assert!(answers(address));
    assert_ne!(server.process(), process);
    server.kill().await;
    assert!(!answers(address));
    server.restart().await;
    let (process, folder) = (server.process(), server.folder().to_owned());
    assert!(folder.exists());
    drop(server);
    assert!(!answers(address));
    // Of one that ended and is not yet buried, nothing is left but its number.
    assert!(
        fs::read(format!("/proc/{process}/cmdline"))
            .unwrap_or_default()
            .is_empty()
    );
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_redis_answers_until_it_is_killed_and_again_after_a_restart() {
    let server = PrivateRedis::durable().await;
    assert_eq!(server.command("PING").await, "+PONG\r\n");
    assert_eq!(server.command("SET kept yes").await, "+OK\r\n");
    server.kill().await;
    assert!(TcpStream::connect(server.address()).is_err());
    server.restart().await;
    assert_eq!(server.command("GET kept").await, "$3\r\nyes\r\n");
    server.stop().await;
    server.restart().await;
    assert_eq!(server.command("GET kept").await, "$3\r\nyes\r\n");
    let address = server.address();
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}

#[tokio::test]
async fn a_rabbitmq_answers_until_it_is_killed_and_again_after_a_restart() {
    let server = PrivateRabbit::start().await;
    let (address, folder) = (server.address(), server.folder().to_owned());
    assert!(TcpStream::connect(address).is_ok());
    server.kill().await;
    assert!(TcpStream::connect(address).is_err());
    server.restart().await;
    assert!(TcpStream::connect(address).is_ok());
    drop(server);
    assert!(TcpStream::connect(address).is_err() && !folder.exists());
}

#[tokio::test]
async fn a_moto_answers_until_it_is_killed_and_again_after_a_restart() {
    let server = PrivateMoto::start().await;
    server.reset().await;
    server.kill().await;
    assert!(TcpStream::connect(server.address()).is_err());
    server.restart().await;
    let address = server.address();
    assert!(TcpStream::connect(address).is_ok());
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn an_account_is_read_by_its_whole_name() {
    let accounts =
        "root:x:0:0:root:/root:/bin/sh\npostgres2:x:7:8::/:/\npostgres:x:101:104::/:/\nbroken\n";
    let found = Account::read(accounts, "postgres");
    assert_eq!(found, Account::read("postgres:x:101:104", "postgres"));
    assert!(found.is_some());
    assert_eq!(Account::read(accounts, "broken"), None);
    assert_eq!(Account::read(accounts, "nobody"), None);
}

#[test]
fn a_program_is_looked_for_in_the_path_first() {
    let shell = find("sh", "/nowhere").expect("a shell");
    assert!(shell.is_file());
    assert_eq!(find("mamparo-is-no-program", "/nowhere"), None);
}
