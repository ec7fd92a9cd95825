//! Bodies: what has come already and what is still to come, within bounds.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};
use tokio::{
    sync::mpsc::Receiver,
    time::{Instant, Sleep},
};

/// Read before a request takes its turn: a slow sender of a small body then keeps nobody waiting.
const AHEAD: usize = 64 * 1024;

/// Of an answer.
pub(super) type AnswerBody = BoxBody<Bytes, BodyError>;

/// Why a body ended before its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyError {
    /// Longer than the bound.
    #[error("the body is longer than the bound")]
    TooLarge,
    /// It did not arrive in time.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// Whoever sent it broke off.
    #[error("the body broke off: {0}")]
    Broken(String),
}

/// A body that is there.
pub(super) fn whole(text: String) -> AnswerBody {
    Full::from(text).map_err(|never: Infallible| match never {}).boxed()
}

/// The body of a request: first what was read ahead, then the rest as it comes.
pub(super) struct RequestBody {
    ahead: VecDeque<Bytes>,
    rest: Option<Incoming>,
    /// How many bytes may still come.
    left: u64,
    /// When the rest has to be there.
    until: Option<Pin<Box<Sleep>>>,
    /// Why it broke off, for whoever answers.
    failure: Arc<OnceLock<BodyError>>,
}

impl RequestBody {
    /// Reads the beginning.
    pub(super) async fn read_ahead(mut body: Incoming, max: u64) -> Result<Self, BodyError> {
        let (mut ahead, mut length) = (VecDeque::new(), 0);
        let mut rest = None;
        loop {
            if length > AHEAD {
                rest = Some(body);
                break;
            }
            let Some(frame) = body.frame().await else { break };
            let frame = frame.map_err(|error| BodyError::Broken(error.to_string()))?;
            // Trailers are for the neighbour only.
            let Ok(data) = frame.into_data() else { continue };
            length += data.len();
            if u64::try_from(length).unwrap_or(u64::MAX) > max {
                return Err(BodyError::TooLarge);
            }
            ahead.push_back(data);
        }
        let left = max - u64::try_from(length).unwrap_or(max);
        Ok(Self { ahead, rest, left, until: None, failure: Arc::default() })
    }

    /// Has the rest come until then.
    pub(super) fn until(mut self, until: Instant) -> Self {
        self.until = Some(Box::pin(tokio::time::sleep_until(until)));
        self
    }

    /// Where it says why it broke off.
    pub(super) fn failure(&self) -> Arc<OnceLock<BodyError>> {
        self.failure.clone()
    }

    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        loop {
            match Pin::new(&mut *rest).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
                    return Poll::Ready(Some(match self.left.checked_sub(length) {
                        Some(left) => {
                            self.left = left;
                            Ok(data)
                        }
                        None => Err(BodyError::TooLarge),
                    }));
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(BodyError::Broken(error.to_string()))));
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {}
            }
            let is_late =
                self.until.as_mut().is_some_and(|until| until.as_mut().poll(context).is_ready());
            return if is_late {
                Poll::Ready(Some(Err(BodyError::TooSlow)))
            } else {
                Poll::Pending
            };
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(data) = self.ahead.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        let polled = self.poll_rest(context);
        if let Poll::Ready(Some(Err(error))) = &polled {
            // The first reason counts.
            let _ = self.failure.set(error.clone());
            self.rest = None;
        }
        polled.map(|next| next.map(|result| result.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_empty() && self.rest.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let ahead =
            self.ahead.iter().map(|data| u64::try_from(data.len()).unwrap_or(u64::MAX)).sum();
        match &self.rest {
            None => SizeHint::with_exact(ahead),
            Some(rest) => {
                let (rest, mut hint) = (rest.size_hint(), SizeHint::new());
                hint.set_lower(rest.lower().saturating_add(ahead));
                if let Some(upper) = rest.upper() {
                    hint.set_upper(upper.saturating_add(ahead));
                }
                hint
            }
        }
    }
}

/// A piece of an answer; `None` is its end.
pub(super) type Piece = Result<Option<Bytes>, BodyError>;

/// What the upstream answers, handed over piece by piece. If they cease before the end, that is an error: nobody shall
/// take a part for the whole.
pub(super) struct Relayed(pub(super) Receiver<Piece>);

impl Body for Relayed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.0.poll_recv(context).map(|next| match next {
            Some(Ok(Some(data))) => Some(Ok(Frame::data(data))),
            Some(Ok(None)) => None,
            Some(Err(error)) => Some(Err(error)),
            None => Some(Err(BodyError::Broken("the proxy has ceased to pass it on".into()))),
        })
    }
}
