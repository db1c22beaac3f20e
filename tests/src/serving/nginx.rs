//! What a client sees through nginx (Debian's): all that the server tells, and no more than it should be believed.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use mamparo::caller::{CallerKey, TrustedProxies};
use mamparo::problem::{Problem, ProblemType};
use mamparo::rate_limit::RateLimitPolicy;
use mamparo::serve;
use mamparo_testkit::grpc::{EchoClient, EchoRequest, EchoServer, Echoing};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tonic::Code;
use tonic::service::Routes;

use crate::grpc::Ours;
use crate::served::exchange;

const HELP: &str = "scripts/peers nginx installs it where it can";

struct Nginx {
    address: SocketAddr,
    // Before the folder that it writes to.
    _server: Child,
    _folder: Folder,
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

impl Nginx {
    /// Starts one before a server of HTTP's, on a free port.
    async fn before(server: SocketAddr) -> Self {
        Self::with(&format!(
            "location / {{ proxy_pass http://{server};\n\
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }}"
        ))
        .await
    }

    /// Starts one before a server of gRPC's.
    async fn before_grpc(server: SocketAddr) -> Self {
        Self::with(&format!(
            "location / {{ grpc_pass grpc://{server};\n\
             grpc_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }}"
        ))
        .await
    }

    async fn with(location: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = port.local_addr().unwrap();
        drop(port);
        let name = format!("mamparo-nginx-{}-{}", std::process::id(), address.port());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        let own = folder.0.display();
        let http2 = if location.contains("grpc_pass") {
            " http2"
        } else {
            ""
        };
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {own}/{kind};\n"))
            .concat();
        let config = format!(
            "daemon off;\nmaster_process off;\npid {own}/pid;\nerror_log {own}/error.log;\n\
             events {{ worker_connections 64; }}\n\
             http {{\naccess_log off;\n{temporary}\
             server {{ listen {address}{http2}; {location} }}\n}}\n"
        );
        fs::write(folder.0.join("nginx.conf"), config).unwrap();
        let path = format!(
            "{}:/usr/sbin:/sbin",
            std::env::var("PATH").unwrap_or_default()
        );
        let server = Command::new("nginx")
            .env("PATH", path)
            .args(["-p", &own.to_string(), "-c", "nginx.conf"])
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("nginx does not start: {error}; {HELP}"));
        let nginx = Self {
            address,
            _server: server,
            _folder: folder,
        };
        let listens = async {
            while tokio::net::TcpStream::connect(address).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(20), listens)
            .await
            .expect("nginx listens in time");
        nginx
    }

    /// Asks as a client at that address of loopback, and returns all that comes back.
    async fn ask(&self, client: Ipv4Addr, head: &str) -> String {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((client, 0))).unwrap();
        let mut socket = socket.connect(self.address).await.unwrap();
        let request = format!("{head}\r\nhost: a\r\nconnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

fn psp_is_away() -> Problem {
    Problem::new(ProblemType::DEPENDENCY_UNAVAILABLE)
        .with_dependency("psp")
        .with_retry_after(Duration::from_secs(7))
        .with_attempts_spent()
}

async fn start() -> Nginx {
    let limit = RateLimitPolicy::per(Duration::from_secs(60), 2)
        .build()
        .unwrap();
    let proxies = TrustedProxies::x_forwarded_for(["127.0.0.1"]).unwrap();
    let layers = serve::http()
        .rate_limit(limit, CallerKey::address(proxies))
        .rate_limit_told_as(limit.quota("per-client").unwrap());
    let routes = Router::new()
        .route("/", get(async || "fine"))
        .route("/away", get(async || psp_is_away()))
        .route("/endless", get(std::future::pending::<StatusCode>))
        .layer(layers);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener, service).into_future());
    let direct = exchange(server, "GET /away HTTP/1.1").await;
    assert!(direct.starts_with("HTTP/1.1 503 "), "{direct}");
    Nginx::before(server).await
}

/// Whatever case nginx writes names in.
fn has(answer: &str, parts: &[&str]) {
    let answer = answer.to_lowercase();
    for part in parts {
        let part = &part.to_lowercase();
        assert!(answer.contains(part), "no {part:?} in {answer}");
    }
}

const fn client(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, last)
}

#[tokio::test]
async fn what_a_server_tells_passes_through_nginx() {
    let nginx = start().await;
    let away = nginx.ask(client(9), "GET /away HTTP/1.1").await;
    assert!(
        away.starts_with("HTTP/1.1 503 Service Unavailable\r\n"),
        "{away}"
    );
    has(
        &away,
        &[
            "content-type: application/problem+json\r\n",
            "retry-after: ",
            "ratelimit-policy: \"per-client\";q=2;w=60\r\n",
            "ratelimit: \"per-client\";r=1;t=30\r\n",
            "x-mamparo-retry: exhausted\r\n",
            r#""status":503,"dependency":"psp"}"#,
        ],
    );

    // Each client has its own limit, and is not believed to be another one.
    let forged = "GET / HTTP/1.1\r\nx-forwarded-for: 203.0.113.1";
    for (from, head, status) in [
        (2, "GET / HTTP/1.1", "200"),
        (2, forged, "200"),
        (2, forged, "429"),
        (3, "GET / HTTP/1.1", "200"),
    ] {
        let answer = nginx.ask(client(from), head).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{from} {head}: {answer}"
        );
        if status == "429" {
            let kind = "https://iana.org/assignments/http-problem-types#quota-exceeded";
            has(
                &answer,
                &[kind, "retry-after: ", "ratelimit: \"per-client\";r=0;t="],
            );
        }
    }

    // The caller's deadline, and its end.
    let head = "GET /endless HTTP/1.1\r\nx-request-timeout-ms: 80";
    let late = timeout(Duration::from_secs(5), nginx.ask(client(4), head)).await;
    let late = late.expect("the deadline has come through");
    assert!(late.starts_with("HTTP/1.1 504 "), "{late}");
    has(
        &late,
        &[
            "application/problem+json",
            r#""title":"Gateway Timeout","status":504"#,
        ],
    );
}

/// The deadline arrives, the limit is each client's own, and pushback comes back with the refusal.
#[tokio::test]
async fn what_a_server_of_grpc_tells_passes_through_nginx() {
    let limit = RateLimitPolicy::per(Duration::from_secs(60), 2).build();
    let proxies = TrustedProxies::x_forwarded_for(["127.0.0.1"]).unwrap();
    let layers = serve::grpc().rate_limit(limit.unwrap(), CallerKey::address(proxies));
    let routes = Routes::new(EchoServer::new(Echoing));
    let server = Ours::serve_with(routes, layers).await;
    let nginx = Nginx::before_grpc(server.address).await;
    // No channel of tonic's: that ends a call at its deadline by itself.
    let plain = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let origin = format!("http://{}", nginx.address).parse().unwrap();
    let mut echo = EchoClient::with_origin(plain, origin);

    let slow = EchoRequest::text("hola").after(Duration::from_secs(30));
    let mut late = tonic::Request::new(slow);
    let limit = "100m".parse().unwrap();
    late.metadata_mut().insert("grpc-timeout", limit);
    let late = timeout(Duration::from_secs(5), echo.say(late)).await;
    let late = late.expect("the deadline has come through").unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");

    assert!(echo.say(EchoRequest::text("hola")).await.is_ok());
    let refused = echo.say(EchoRequest::text("hola")).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let pushback = refused.metadata().get("grpc-retry-pushback-ms");
    let millis: u64 = pushback.unwrap().to_str().unwrap().parse().unwrap();
    // A place comes back every 30 s; what is told is up to half as long again.
    assert!((20_000..=45_000).contains(&millis), "{millis}");
}
