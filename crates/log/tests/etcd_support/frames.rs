//! As much of HTTP/2 as it takes to see an append go by, and its answer.

/// Of a frame.
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;

/// What a client sends first of all.
const PREFACE_BYTES: usize = 24;
const HEADER_BYTES: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    flags: u8,
    pub stream: u32,
    pub length: usize,
}

impl Frame {
    pub fn ends_its_stream(&self) -> bool {
        self.flags & END_STREAM != 0
    }
}

/// Finds the frames in what one side sends.
#[derive(Debug)]
pub struct Frames {
    /// Bytes of the current frame that are still to come.
    left: usize,
    header: Vec<u8>,
}

impl Frames {
    pub fn of_client() -> Self {
        Self { left: PREFACE_BYTES, header: Vec::new() }
    }

    pub fn of_server() -> Self {
        Self { left: 0, header: Vec::new() }
    }

    /// The frames that begin in these bytes.
    pub fn take(&mut self, mut bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            bytes = &bytes[skipped..];
            let wanted = (HEADER_BYTES - self.header.len()).min(bytes.len());
            self.header.extend_from_slice(&bytes[..wanted]);
            bytes = &bytes[wanted..];
            if let [a, b, c, kind, flags, stream @ ..] = &self.header[..]
                && let Ok(stream) = <[u8; 4]>::try_from(stream)
            {
                let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
                let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
                frames.push(Frame { kind: *kind, flags: *flags, stream, length });
                self.left = length;
                self.header.clear();
            }
        }
        frames
    }

    /// Whether everything that has begun has come.
    pub fn is_whole(&self) -> bool {
        self.left == 0 && self.header.is_empty()
    }
}
