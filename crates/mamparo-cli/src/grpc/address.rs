//! Where a call goes: a server, and what to call there.

use http::Uri;
use http::uri::PathAndQuery;
use reqwest::Url;

/// A server, and the method that was named; either part of its name may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Scheme, host and port.
    pub(crate) origin: Uri,
    /// The service's full name, with its package.
    pub(crate) service: String,
    pub(crate) method: String,
}

impl Address {
    /// Takes a URL apart: `http://host:port/package.Service/Method`.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as the end of a sentence that names it.
    pub(crate) fn of(url: &Url) -> Result<Self, String> {
        if url.query().is_some() {
            return Err("a gRPC method has no query: put it into --data".to_owned());
        }
        let path = url.path();
        let path = path.strip_prefix('/').unwrap_or(path);
        let (service, method) = path.split_once('/').unwrap_or((path, ""));
        let mut origin = url.clone();
        origin.set_path("/");
        let odd = |name: &str| name.contains(['/', '%']);
        if odd(service) || odd(method) || (service.is_empty() && !method.is_empty()) {
            return Err(format!(
                "it names no method: write {origin}package.Service/Method"
            ));
        }
        let origin = origin.as_str().parse();
        Ok(Self {
            origin: origin.map_err(|error| format!("it can't be called: {error}"))?,
            service: service.to_owned(),
            method: method.to_owned(),
        })
    }

    /// Returns the method's name as gRPC and its telemetry write it, without a slash before it.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.service, self.method)
    }

    /// Returns the path of a request.
    pub(crate) fn path(&self) -> Result<PathAndQuery, String> {
        let path = format!("/{}", self.name());
        path.parse()
            .map_err(|error| format!("`{path}` can't be called: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Result<Address, String> {
        Address::of(&Url::parse(text).unwrap())
    }

    #[test]
    fn a_url_is_a_server_and_a_method() {
        let address = address("http://127.0.0.1:50051/shop.v1.Prices/Get").unwrap();
        assert_eq!(address.origin, "http://127.0.0.1:50051/");
        assert_eq!(address.name(), "shop.v1.Prices/Get");
        assert_eq!(address.path().unwrap(), "/shop.v1.Prices/Get");
    }

    #[test]
    fn parts_that_are_missing_are_left_empty() {
        let parts = |text| {
            let address = address(text).unwrap();
            (address.service, address.method)
        };
        assert_eq!(parts("http://a:1"), (String::new(), String::new()));
        assert_eq!(parts("http://a:1/p.S"), ("p.S".to_owned(), String::new()));
        assert_eq!(parts("http://a:1/p.S/"), ("p.S".to_owned(), String::new()));
    }

    #[test]
    fn what_is_no_method_is_refused() {
        for wrong in [
            "http://a:1/x/p.S/M",
            "http://a:1/p.S/M%20",
            "http://a:1//M/N",
        ] {
            let why = address(wrong).unwrap_err();
            assert!(
                why.contains("write http://a:1/package.Service/Method"),
                "{wrong}: {why}"
            );
        }
        assert!(
            address("http://a:1/p.S/M?x=1")
                .unwrap_err()
                .contains("no query")
        );
    }
}
