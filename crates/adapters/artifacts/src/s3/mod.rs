//! Objects in any S3, by configuration.
//!
//! Requests are signed here and sent by a plain HTTP client. What may go better the next time is
//! tried again: requests whose body is at hand, parts of an object, and a download, which goes on
//! where it stopped.

mod copy;
mod get;
mod list;
mod options;
mod put;
mod replaced;
mod uploads;
mod wire;
mod xml;

use std::fs;
use std::ops::Range;
use std::sync::Arc;

use futures::FutureExt as _;
use reqwest::{Certificate, Client, Url};
use rusty_s3::{Bucket, Method, UrlStyle};
use wharf_ports::{
    BoundVersions, ByteStream, ObjectAnswer, ObjectBody, ObjectEntry, ObjectError, ObjectErrorKind,
    ObjectInfo, ObjectStore, ObjectUpload, ObjectVersion, PutObject, UploadPart,
};
use wharf_vocab::{B3, Timestamp};

pub use options::{S3Options, Style};

use self::replaced::ReplacedParts;
use self::wire::{BucketClient, S3Call};
use crate::presign::Presigner;
use crate::rolling::Rolling;

/// The header that holds an object's hash.
const B3_HEADER: &str = "x-amz-meta-b3";
/// The header that names a version.
const VERSION_HEADER: &str = "x-amz-version-id";

/// Objects in a bucket of any S3.
pub struct S3Objects {
    shared: Arc<S3State>,
    presigner: Presigner,
}

/// What requests under way need.
pub(crate) struct S3State {
    wire: BucketClient,
    /// What all keys begin with; empty or with a slash at its end.
    prefix: String,
    copy_bytes_max: u64,
    rolling: Rolling,
    replaced: ReplacedParts,
}

impl S3Objects {
    /// Makes a client. Nothing is sent yet; [`check`](Self::check) says whether it would work.
    pub fn open(options: &S3Options) -> Result<Arc<Self>, ObjectError> {
        let endpoint = url(&options.endpoint, "the address of the artifact store")?;
        let public = match &options.public_url {
            Some(public) => url(public, "the public address of the artifact store")?,
            None => endpoint.clone(),
        };
        let style = match options.style {
            Style::Path => UrlStyle::Path,
            Style::VirtualHost => UrlStyle::VirtualHost,
        };
        let bucket = |endpoint: Url| {
            let (name, region) = (options.bucket.clone(), options.region.clone());
            let bucket = Bucket::new(endpoint, style, name, region);
            bucket.map_err(|error| unfit(&format!("the bucket cannot be used: {error}")))
        };
        let credentials = match &options.session_token {
            Some(token) => {
                rusty_s3::Credentials::new_with_token(&options.key_id, &options.secret, token)
            }
            None => rusty_s3::Credentials::new(&options.key_id, &options.secret),
        };
        let prefix = options.prefix.as_deref().unwrap_or_default().trim_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let wire = BucketClient {
            client: client(options)?,
            bucket: bucket(endpoint)?,
            credentials: credentials.clone(),
            byte_timeout: options.byte_timeout,
            tries: options.tries.max(1),
            pause: options.pause,
        };
        let presigner = Presigner::new(bucket(public)?, credentials);
        let copy_bytes_max = options.copy_bytes_max;
        let shared = Arc::new(S3State {
            copy_bytes_max,
            wire,
            prefix,
            rolling: Rolling::default(),
            replaced: ReplacedParts::default(),
        });
        Ok(Arc::new(Self { shared, presigner }))
    }

    /// Says whether the bucket is there and lets the core in.
    pub async fn check(&self) -> Result<(), ObjectError> {
        let call = S3Call::new(Method::Get, "").query("list-type", "2").query("max-keys", "1");
        self.shared.wire.text(&call, "use the bucket").await.map(drop)
    }

    fn shared(&self) -> Arc<S3State> {
        Arc::clone(&self.shared)
    }
}

impl S3State {
    /// The key in the bucket.
    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

impl ObjectStore for S3Objects {
    fn presign(&self, method: wharf_ports::Method, key: &str, lifetime_s: u64) -> String {
        self.presigner.presign(method, &self.shared.key(key), lifetime_s)
    }

    fn presign_version(&self, located: &ObjectVersion, _holder: &str, lifetime_s: u64) -> String {
        let (key, version) = (self.shared.key(&located.key), located.version.as_deref());
        self.presigner.presign_version(&key, version, None, lifetime_s)
    }

    fn origin(&self) -> String {
        self.presigner.origin()
    }

    fn head(&self, key: String) -> ObjectAnswer<Option<ObjectInfo>> {
        get::head(self.shared(), key).boxed()
    }

    fn get(&self, key: String, range: Option<Range<u64>>) -> ObjectAnswer<Option<ObjectBody>> {
        get::get(self.shared(), key, range).boxed()
    }

    fn locate(&self, wanted: ObjectVersion) -> ObjectAnswer<Option<ObjectVersion>> {
        get::locate(self.shared(), wanted).boxed()
    }

    fn get_version(&self, wanted: ObjectVersion) -> ObjectAnswer<Option<ObjectBody>> {
        get::get_version(self.shared(), wanted).boxed()
    }

    fn put(&self, put: PutObject, body: ByteStream) -> ObjectAnswer<ObjectInfo> {
        put::put(self.shared(), put, body).boxed()
    }

    fn copy(&self, from: String, to: String) -> ObjectAnswer<ObjectInfo> {
        copy::copy(self.shared(), from, to).boxed()
    }

    fn delete(&self, key: String) -> ObjectAnswer<()> {
        put::delete(self.shared(), key).boxed()
    }

    fn list(
        &self,
        prefix: String,
        after: Option<String>,
        limit: usize,
    ) -> ObjectAnswer<Vec<ObjectEntry>> {
        list::list(self.shared(), prefix, after, limit).boxed()
    }

    fn begin_upload(&self, key: String, media_type: String) -> ObjectAnswer<String> {
        uploads::begin(self.shared(), key, media_type).boxed()
    }

    fn put_part(
        &self,
        upload: ObjectUpload,
        number: u32,
        bytes: u64,
        body: ByteStream,
    ) -> ObjectAnswer<UploadPart> {
        uploads::put_part(self.shared(), upload, number, bytes, body).boxed()
    }

    fn parts(&self, upload: ObjectUpload) -> ObjectAnswer<Option<Vec<UploadPart>>> {
        uploads::parts(self.shared(), upload).boxed()
    }

    fn complete_upload(
        &self,
        upload: ObjectUpload,
        expected: Option<B3>,
    ) -> ObjectAnswer<ObjectInfo> {
        uploads::complete(self.shared(), upload, expected).boxed()
    }

    fn abort_upload(&self, upload: ObjectUpload) -> ObjectAnswer<()> {
        uploads::abort(self.shared(), upload).boxed()
    }

    fn sweep(&self, before: Timestamp, _: BoundVersions) -> ObjectAnswer<u64> {
        list::sweep(self.shared(), before).boxed()
    }
}

fn client(options: &S3Options) -> Result<Client, ObjectError> {
    // Whoever comes second finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = Client::builder()
        .connect_timeout(options.byte_timeout)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true);
    if let Some(path) = &options.ca_file {
        let unfit = |why: String| unfit(&format!("{} cannot be used: {why}", path.display()));
        let pem = fs::read(path).map_err(|error| unfit(error.to_string()))?;
        let certificates = Certificate::from_pem_bundle(&pem);
        let certificates = certificates.map_err(|error| unfit(error.to_string()))?;
        client = client.tls_certs_merge(certificates);
    }
    client.build().map_err(|error| unfit(&format!("no HTTP client can be made: {error}")))
}

fn url(text: &str, what: &str) -> Result<Url, ObjectError> {
    let url = Url::parse(text).map_err(|_| unfit(&format!("{what} is no URL")))?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err(unfit(&format!("{what} may have neither a user nor a query")));
    }
    Ok(url)
}

fn unfit(why: &str) -> ObjectError {
    ObjectError::new(ObjectErrorKind::Denied, why)
}
