//! Generates the test service of `proto/echo.proto`, without a `protoc`.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_source_info(true).include_imports(true);
    compiler.open_files(["echo.proto"])?;

    let out = PathBuf::from(env::var("OUT_DIR")?);
    let encoded = compiler.encode_file_descriptor_set();
    fs::write(out.join("echo.bin"), encoded)?;
    tonic_prost_build::configure().compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
