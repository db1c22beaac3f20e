//! The services that are described, and a method among them.

use prost_reflect::{DescriptorPool, MethodDescriptor, ServiceDescriptor};

use super::Address;
use super::names::{list, meant};

/// Descriptors of services and of their messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    pool: DescriptorPool,
    /// All that is served, where that is more than what is described here.
    served: Vec<String>,
}

impl Schema {
    /// Stands on what is described.
    pub(crate) fn new(pool: DescriptorPool) -> Self {
        let served = pool
            .services()
            .map(|service| service.full_name().to_owned());
        Self {
            served: served.collect(),
            pool,
        }
    }

    /// Knows the names of what is served, and of no more than that.
    pub(super) fn of_names(served: Vec<String>) -> Self {
        Self {
            served,
            ..Self::default()
        }
    }

    /// Finds a method.
    ///
    /// # Errors
    ///
    /// That there is none of that name, and what there is; or that it streams.
    pub(crate) fn method(&self, address: &Address) -> Result<MethodDescriptor, String> {
        let service = self.service(&address.service)?;
        let methods: Vec<_> = service.methods().collect();
        let names = || methods.iter().map(|method| method.name());
        let Some(method) = methods.iter().find(|m| m.name() == address.method) else {
            return Err(no_method(&service, &address.method, names));
        };
        let streams = match (method.is_client_streaming(), method.is_server_streaming()) {
            (false, false) => return Ok(method.clone()),
            (true, false) => "takes a stream",
            (false, true) => "answers with a stream",
            (true, true) => "streams both ways",
        };
        let name = address.name();
        Err(format!(
            "`{name}` {streams}: only unary methods can be called"
        ))
    }

    fn service(&self, name: &str) -> Result<ServiceDescriptor, String> {
        if let Some(service) = self.pool.get_service_by_name(name) {
            return Ok(service);
        }
        let served = || self.served.iter().map(String::as_str);
        let there_are = match served().next() {
            Some(_) => format!("there are {}", list(served())),
            None => "there is none at all".to_owned(),
        };
        Err(match meant(name, served()) {
            _ if name.is_empty() => format!("no service is named: {there_are}"),
            Some(meant) => format!("there is no service `{name}`: did you mean `{meant}`?"),
            None => format!("there is no service `{name}`: {there_are}"),
        })
    }
}

fn no_method<'a, I>(service: &ServiceDescriptor, typed: &str, names: impl Fn() -> I) -> String
where
    I: Iterator<Item = &'a str>,
{
    let service = service.full_name();
    match meant(typed, names()) {
        _ if names().next().is_none() => format!("`{service}` has no methods"),
        _ if typed.is_empty() => {
            format!(
                "no method of `{service}` is named: it has {}",
                list(names())
            )
        }
        Some(meant) => format!("`{service}` has no method `{typed}`: did you mean `{meant}`?"),
        None => format!(
            "`{service}` has no method `{typed}`: it has {}",
            list(names())
        ),
    }
}
