//! The head of a request, held as small as it can be.

use ::http::request::Parts;
use ::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

/// The head of a request, for the attempts to come.
///
/// Most requests are sent once, and a copy of a header map is two allocations: the fields lie in a row here, and become a map
/// again when they are needed.
pub(super) struct HeldHead {
    method: Method,
    uri: Uri,
    version: Version,
    fields: Vec<(HeaderName, HeaderValue)>,
    extensions: HeldExtensions,
}

enum HeldExtensions {
    /// What a generated client of tonic's adds, and nothing else: three allocations less.
    #[cfg(feature = "tonic")]
    Method(::tonic::GrpcMethod<'static>),
    All(Extensions),
}

impl HeldHead {
    /// Copies a head.
    pub(super) fn of(head: &Parts) -> Self {
        let mut fields = Vec::with_capacity(head.headers.len());
        let copies = (head.headers.iter()).map(|(name, value)| (name.clone(), value.clone()));
        fields.extend(copies);
        Self {
            method: head.method.clone(),
            uri: head.uri.clone(),
            version: head.version,
            fields,
            extensions: HeldExtensions::of(&head.extensions),
        }
    }

    /// Makes a request with this head.
    pub(super) fn request<B>(&self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = self.version;
        let mut headers = HeaderMap::with_capacity(self.fields.len());
        for (name, value) in &self.fields {
            headers.append(name, value.clone());
        }
        *request.headers_mut() = headers;
        *request.extensions_mut() = self.extensions.again();
        request
    }

    pub(super) const fn method(&self) -> &Method {
        &self.method
    }
}

impl HeldExtensions {
    fn of(extensions: &Extensions) -> Self {
        #[cfg(feature = "tonic")]
        if let Some(method) = extensions.get::<::tonic::GrpcMethod<'static>>()
            && extensions.len() == 1
        {
            return Self::Method(method.clone());
        }
        Self::All(extensions.clone())
    }

    fn again(&self) -> Extensions {
        match self {
            #[cfg(feature = "tonic")]
            Self::Method(method) => {
                let mut extensions = Extensions::new();
                extensions.insert(method.clone());
                extensions
            }
            Self::All(extensions) => extensions.clone(),
        }
    }
}
