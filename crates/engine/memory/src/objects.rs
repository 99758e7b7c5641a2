//! An artifact store in memory, with switches for trouble.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::future::ready;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use parking_lot::{Mutex, MutexGuard};
use wharf_vocab::limits::UPLOAD_PARTS_MAX;
use wharf_vocab::{B3, Timestamp};

use wharf_ports::{
    BoundVersions, ByteStream, Clock, Method, ObjectAnswer, ObjectBody, ObjectEntry, ObjectError,
    ObjectErrorKind, ObjectInfo, ObjectStore, ObjectUpload, ObjectVersion, PutObject, UploadPart,
};

/// An artifact store in memory. Its addresses lead nowhere, but
/// [`get_at`](MemoryObjects::get_at) and [`put_at`](MemoryObjects::put_at) take them as a real
/// one's endpoint would.
#[derive(Clone)]
pub struct MemoryObjects {
    inner: Arc<Mutex<ObjectsState>>,
    clock: Arc<dyn Clock>,
    chance: RandomState,
}

#[derive(Default)]
struct ObjectsState {
    objects: BTreeMap<String, Object>,
    /// Versions that were replaced, by key and name, and when.
    replaced: BTreeMap<(String, String), (Object, Timestamp)>,
    uploads: BTreeMap<String, MemoryUpload>,
    addresses: BTreeMap<String, Address>,
    /// Whether it is as a bucket without versions.
    unversioned: bool,
    /// Counts what is written, so that every tag is new.
    written: u64,
    /// How many calls are still to fail, and how.
    failing: Option<(usize, ObjectErrorKind)>,
}

#[derive(Clone)]
struct Object {
    info: ObjectInfo,
    bytes: Bytes,
}

struct MemoryUpload {
    key: String,
    media_type: String,
    begun_at: Timestamp,
    parts: BTreeMap<u32, (UploadPart, Bytes)>,
}

struct Address {
    method: Method,
    key: String,
    /// The one version that it is good for.
    version: Option<String>,
    until: Timestamp,
}

impl MemoryObjects {
    /// An empty store that reads this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { inner: Arc::default(), clock, chance: RandomState::new() }
    }

    /// Lets the next `calls` fail; nothing of them becomes true.
    pub fn fail_next(&self, calls: usize, kind: ObjectErrorKind) {
        self.lock().failing = Some((calls, kind));
    }

    /// From now on keeps no versions, as many buckets do.
    pub fn keep_no_versions(&self) {
        self.lock().unversioned = true;
    }

    /// Every address that was made, so that a test can look for them where they must not be.
    pub fn addresses(&self) -> Vec<String> {
        self.lock().addresses.keys().cloned().collect()
    }

    /// The keys of all objects, in order.
    pub fn keys(&self) -> Vec<String> {
        self.lock().objects.keys().cloned().collect()
    }

    /// Reads by an address, as a tool does.
    pub fn get_at(&self, address: &str) -> Result<Bytes, ObjectError> {
        let inner = self.lock();
        let (key, version) = inner.meant(address, Method::Get, self.clock.now())?;
        let object = match &version {
            Some(version) => inner.version(&key, version),
            None => inner.objects.get(&key),
        };
        object.map(|object| object.bytes.clone()).ok_or_else(missing)
    }

    /// Changes the bytes of an object and nothing that is known of them, as a failing disk does.
    pub fn damage(&self, key: &str, bytes: impl Into<Bytes>) {
        if let Some(object) = self.lock().objects.get_mut(key) {
            object.bytes = bytes.into();
        }
    }

    /// Writes by an address, as a tool does.
    pub fn put_at(&self, address: &str, bytes: impl Into<Bytes>) -> Result<(), ObjectError> {
        let now = self.clock.now();
        let mut inner = self.lock();
        let (key, _) = inner.meant(address, Method::Put, now)?;
        let media_type = "application/octet-stream".to_owned();
        inner.write(key, media_type, bytes.into(), now);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, ObjectsState> {
        self.inner.lock()
    }

    /// Does something at once, unless it is to fail.
    fn act<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut ObjectsState, Timestamp) -> Result<T, ObjectError>,
    ) -> ObjectAnswer<T> {
        let now = self.clock.now();
        let mut inner = self.lock();
        let done = inner.may_fail().and_then(|()| act(&mut inner, now));
        ready(done).boxed()
    }

    /// Does something when a whole body is there, unless it is to fail.
    fn act_with<T: Send + 'static>(
        &self,
        body: ByteStream,
        act: impl FnOnce(&mut ObjectsState, Timestamp, Bytes) -> Result<T, ObjectError> + Send + 'static,
    ) -> ObjectAnswer<T> {
        let this = self.clone();
        async move {
            let bytes = body.try_fold(BytesMut::new(), |mut all, piece| async move {
                all.extend_from_slice(&piece);
                Ok(all)
            });
            let bytes = bytes.await?.freeze();
            this.act(|inner, now| act(inner, now, bytes)).await
        }
        .boxed()
    }
}

impl fmt::Debug for MemoryObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryObjects").finish_non_exhaustive()
    }
}

impl ObjectsState {
    fn may_fail(&mut self) -> Result<(), ObjectError> {
        match &mut self.failing {
            Some((calls, kind)) if *calls > 0 => {
                *calls -= 1;
                Err(ObjectError::new(*kind, "the store was told to fail"))
            }
            _ => Ok(()),
        }
    }

    /// The key that an address is good for, and the version of it.
    fn meant(
        &self,
        address: &str,
        method: Method,
        now: Timestamp,
    ) -> Result<(String, Option<String>), ObjectError> {
        let known = self.addresses.get(address);
        let good = known.filter(|known| known.method == method && now < known.until);
        let denied = || ObjectError::new(ObjectErrorKind::Denied, "the address is not good");
        good.map(|good| (good.key.clone(), good.version.clone())).ok_or_else(denied)
    }

    /// A version of an object, the current one or one that was replaced.
    fn version(&self, key: &str, version: &str) -> Option<&Object> {
        let current = self.objects.get(key).filter(|object| object.info.tag == version);
        let replaced = || self.replaced.get(&(key.to_owned(), version.to_owned()));
        current.or_else(|| replaced().map(|(object, _)| object))
    }

    fn wanted(&self, wanted: &ObjectVersion) -> Option<&Object> {
        let named = wanted.version.as_deref().and_then(|name| self.version(&wanted.key, name));
        let same = |object: &&Object| match &wanted.tag {
            Some(tag) if *tag == object.info.tag => true,
            _ => wanted.b3.is_some() && object.info.b3 == wanted.b3,
        };
        named.or_else(|| self.objects.get(&wanted.key).filter(same))
    }

    fn tag(&mut self) -> String {
        self.written += 1;
        self.written.to_string()
    }

    fn write(
        &mut self,
        key: String,
        media_type: String,
        bytes: Bytes,
        now: Timestamp,
    ) -> ObjectInfo {
        let tag = self.tag();
        let info = ObjectInfo {
            bytes: length(&bytes),
            b3: Some(hash(&bytes)),
            media_type,
            written_at: now,
            version: (!self.unversioned).then(|| tag.clone()),
            tag,
        };
        let object = Object { info: info.clone(), bytes };
        let before = self.objects.insert(key.clone(), object);
        if let Some(before) = before.filter(|_| !self.unversioned) {
            self.replaced.insert((key, before.info.tag.clone()), (before, now));
        }
        info
    }

    fn upload(&mut self, upload: &ObjectUpload) -> Option<&mut MemoryUpload> {
        self.uploads.get_mut(&upload.id).filter(|open| open.key == upload.key)
    }
}

impl MemoryObjects {
    fn address(&self, method: Method, key: &str, version: Option<&str>, lifetime_s: u64) -> String {
        let until = self.clock.now().plus_ms(lifetime_s.saturating_mul(1000));
        let mut inner = self.lock();
        let count = inner.addresses.len();
        let signature = self.chance.hash_one((count, key));
        let verb = match method {
            Method::Get => "get",
            Method::Put => "put",
        };
        let address = format!("memory://objects/{verb}/{key}?signature={signature:016x}{count}");
        let (key, version) = (key.to_owned(), version.map(str::to_owned));
        inner.addresses.insert(address.clone(), Address { method, key, version, until });
        address
    }
}

impl ObjectStore for MemoryObjects {
    fn presign(&self, method: Method, key: &str, lifetime_s: u64) -> String {
        self.address(method, key, None, lifetime_s)
    }

    fn presign_version(&self, located: &ObjectVersion, _: &str, lifetime_s: u64) -> String {
        self.address(Method::Get, &located.key, located.version.as_deref(), lifetime_s)
    }

    fn origin(&self) -> String {
        "memory://objects".to_owned()
    }

    fn head(&self, key: String) -> ObjectAnswer<Option<ObjectInfo>> {
        self.act(|inner, _| Ok(inner.objects.get(&key).map(|object| object.info.clone())))
    }

    fn get(&self, key: String, range: Option<Range<u64>>) -> ObjectAnswer<Option<ObjectBody>> {
        self.act(|inner, _| {
            let Some(object) = inner.objects.get(&key) else { return Ok(None) };
            let bytes = match range {
                None => object.bytes.clone(),
                Some(range) => part_of(&object.bytes, &range)?,
            };
            let stream = stream::iter([Ok(bytes)]).boxed();
            Ok(Some(ObjectBody { info: object.info.clone(), stream }))
        })
    }

    fn locate(&self, wanted: ObjectVersion) -> ObjectAnswer<Option<ObjectVersion>> {
        self.act(|inner, _| {
            let found = inner.wanted(&wanted).map(|object| object.info.version.clone());
            Ok(found.map(|version| ObjectVersion { version, ..wanted }))
        })
    }

    fn get_version(&self, wanted: ObjectVersion) -> ObjectAnswer<Option<ObjectBody>> {
        self.act(|inner, _| {
            let Some(object) = inner.wanted(&wanted) else { return Ok(None) };
            let stream = stream::iter([Ok(object.bytes.clone())]).boxed();
            Ok(Some(ObjectBody { info: object.info.clone(), stream }))
        })
    }

    fn put(&self, put: PutObject, body: ByteStream) -> ObjectAnswer<ObjectInfo> {
        self.act_with(body, move |inner, now, bytes| {
            let whole = put.bytes.is_none_or(|wanted| wanted == length(&bytes));
            if !whole || put.b3.is_some_and(|wanted| wanted != hash(&bytes)) {
                return Err(mismatch());
            }
            Ok(inner.write(put.key, put.media_type, bytes, now))
        })
    }

    fn copy(&self, from: String, to: String) -> ObjectAnswer<ObjectInfo> {
        self.act(|inner, now| {
            let from = inner.objects.get(&from).cloned().ok_or_else(missing)?;
            if let Some(same) = inner.objects.get(&to).filter(|to| to.bytes == from.bytes) {
                return Ok(same.info.clone());
            }
            Ok(inner.write(to, from.info.media_type, from.bytes, now))
        })
    }

    fn delete(&self, key: String) -> ObjectAnswer<()> {
        self.act(|inner, _| {
            inner.objects.remove(&key);
            inner.replaced.retain(|(replaced, _), _| *replaced != key);
            Ok(())
        })
    }

    fn list(
        &self,
        prefix: String,
        after: Option<String>,
        limit: usize,
    ) -> ObjectAnswer<Vec<ObjectEntry>> {
        self.act(|inner, _| {
            let behind = |key: &str| after.as_deref().is_none_or(|after| key > after);
            let found = inner.objects.range(prefix.clone()..);
            let found = found.take_while(|(key, _)| key.starts_with(&prefix));
            let found = found.filter(|(key, _)| behind(key)).take(limit);
            let entry = |(key, object): (&String, &Object)| ObjectEntry {
                key: key.clone(),
                bytes: object.info.bytes,
                written_at: object.info.written_at,
            };
            Ok(found.map(entry).collect())
        })
    }

    fn begin_upload(&self, key: String, media_type: String) -> ObjectAnswer<String> {
        let chance = self.chance.clone();
        self.act(move |inner, now| {
            let count = inner.tag();
            let id = format!("{:016x}{count}", chance.hash_one(&count));
            let open = MemoryUpload { key, media_type, begun_at: now, parts: BTreeMap::new() };
            inner.uploads.insert(id.clone(), open);
            Ok(id)
        })
    }

    fn put_part(
        &self,
        upload: ObjectUpload,
        number: u32,
        bytes: u64,
        body: ByteStream,
    ) -> ObjectAnswer<UploadPart> {
        self.act_with(body, move |inner, _, content| {
            if bytes != length(&content) || !(1..=UPLOAD_PARTS_MAX).contains(&number) {
                return Err(mismatch());
            }
            let part = UploadPart { number, bytes, tag: inner.tag() };
            let open = inner.upload(&upload).ok_or_else(missing)?;
            open.parts.insert(number, (part.clone(), content));
            Ok(part)
        })
    }

    fn parts(&self, upload: ObjectUpload) -> ObjectAnswer<Option<Vec<UploadPart>>> {
        self.act(|inner, _| {
            let open = inner.upload(&upload);
            Ok(open.map(|open| open.parts.values().map(|(part, _)| part.clone()).collect()))
        })
    }

    fn complete_upload(
        &self,
        upload: ObjectUpload,
        expected: Option<B3>,
    ) -> ObjectAnswer<ObjectInfo> {
        self.act(|inner, now| {
            let open = inner.upload(&upload).ok_or_else(missing)?;
            let mut whole = BytesMut::new();
            for (_, piece) in open.parts.values() {
                whole.extend_from_slice(piece);
            }
            let media_type = open.media_type.clone();
            if open.parts.is_empty() || expected.is_some_and(|wanted| wanted != hash(&whole)) {
                return Err(mismatch());
            }
            inner.uploads.remove(&upload.id);
            Ok(inner.write(upload.key, media_type, whole.freeze(), now))
        })
    }

    fn abort_upload(&self, upload: ObjectUpload) -> ObjectAnswer<()> {
        self.act(|inner, _| {
            if inner.upload(&upload).is_some() {
                inner.uploads.remove(&upload.id);
            }
            Ok(())
        })
    }

    fn sweep(&self, before: Timestamp, bound: BoundVersions) -> ObjectAnswer<u64> {
        self.act(|inner, _| {
            let mut freed = 0;
            inner.replaced.retain(|name, (object, at)| {
                let keep = *at >= before || bound.contains(name);
                if !keep {
                    freed += object.info.bytes;
                }
                keep
            });
            inner.uploads.retain(|_, open| {
                let keep = open.begun_at >= before;
                if !keep {
                    freed += open.parts.values().map(|(part, _)| part.bytes).sum::<u64>();
                }
                keep
            });
            Ok(freed)
        })
    }
}

fn part_of(bytes: &Bytes, range: &Range<u64>) -> Result<Bytes, ObjectError> {
    let end = usize::try_from(range.end).ok().filter(|end| *end <= bytes.len());
    let start = usize::try_from(range.start).ok();
    match (start, end) {
        (Some(start), Some(end)) if start <= end => Ok(bytes.slice(start..end)),
        _ => Err(ObjectError::new(ObjectErrorKind::Mismatch, "the range lies outside")),
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn hash(bytes: &[u8]) -> B3 {
    B3::parse(blake3::hash(bytes).to_hex().as_str()).expect("64 digits of hex are a hash")
}

fn missing() -> ObjectError {
    ObjectError::new(ObjectErrorKind::NotFound, "there is no such object or upload")
}

fn mismatch() -> ObjectError {
    ObjectError::new(ObjectErrorKind::Mismatch, "what arrived is not what was announced")
}
