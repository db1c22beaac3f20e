use super::*;
use crate::semconv::METHOD_OTHER;

/// RP-V3: without the leading slash.
#[test]
fn a_method_is_the_path_without_its_slash() {
    for (path, method) in [
        ("/pkg.S/M", "pkg.S/M"),
        ("/S/M", "S/M"),
        ("/a.b.c.Svc_1/Do_2", "a.b.c.Svc_1/Do_2"),
    ] {
        assert_eq!(well_formed(path), Some(method));
        assert_eq!(Method::called(path).as_str(), method);
        assert_eq!(Method::called(path).span_name(), method);
    }
}

/// RP-04: what is not of the form is not told apart.
#[test]
fn what_is_no_method_is_other() {
    let long = format!("/{}/M", "s".repeat(300));
    for path in [
        "", "/", "/S", "/S/", "//M", "/S/M/", "/a/S/M", "S/M", "/S/M?q", "/S/%20", "/ /M", &long,
    ] {
        assert_eq!(well_formed(path), None, "{path}");
        assert_eq!(Method::called(path).as_str(), METHOD_OTHER, "{path}");
        assert_eq!(Method::called(path).span_name(), "grpc", "{path}");
    }
}

/// RP-02: as gRPC's own libraries name it.
#[test]
fn an_attempts_span_is_named_after_service_and_method() {
    assert_eq!(Method::called("/pkg.S/M").attempt_name(), "Attempt.pkg.S.M");
    assert_eq!(Method::called("/").attempt_name(), "Attempt.grpc");
}
