//! Server-sent events, as far as a watch needs them: `event`, `id` and `data` of each.

/// One event. One without data only moves the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SentEvent {
    pub event: String,
    pub id: Option<String>,
    pub data: String,
}

/// Takes bytes as they come and gives whole events.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    bytes: Vec<u8>,
    next: SentEvent,
    has_data: bool,
}

/// A line that long is no event of ours.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// The stream is not what it should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Parser {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<SentEvent>, Malformed> {
        self.bytes.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut from = 0;
        while let Some(length) = self.bytes[from..].iter().position(|&byte| byte == b'\n') {
            let line = self.bytes[from..from + length].to_vec();
            from += length + 1;
            let line = String::from_utf8(line).map_err(|_| Malformed)?;
            events.extend(self.line(line.strip_suffix('\r').unwrap_or(&line)));
        }
        self.bytes.drain(..from);
        match self.bytes.len() > LINE_BYTES_MAX {
            true => Err(Malformed),
            false => Ok(events),
        }
    }

    fn line(&mut self, line: &str) -> Option<SentEvent> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.next);
            let has_data = std::mem::take(&mut self.has_data);
            return (has_data || event.id.is_some()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.next.event = value.into(),
            "id" => self.next.id = Some(value.into()),
            "data" => {
                if self.has_data {
                    self.next.data.push('\n');
                }
                self.has_data = true;
                self.next.data.push_str(value);
            }
            // A comment (an empty field, the keep-alive) or a field of later.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_whole_however_the_bytes_are_cut() {
        let text =
            ": hello\n\nevent: start\nid: a-1\ndata: {\"x\":\ndata: 1}\r\n\r\nid: a-2\ndata: é\n\n";
        let whole = [
            SentEvent { event: "start".into(), id: Some("a-1".into()), data: "{\"x\":\n1}".into() },
            SentEvent { event: String::new(), id: Some("a-2".into()), data: "é".into() },
        ];
        for step in 1..text.len() {
            let mut parser = Parser::default();
            let pieces = text.as_bytes().chunks(step);
            let events: Vec<_> = pieces.flat_map(|piece| parser.push(piece).unwrap()).collect();
            assert_eq!(events, whole, "in pieces of {step}");
        }
    }

    #[test]
    fn a_heartbeat_moves_the_cursor() {
        let heartbeat = b": still here\nid: a-9\n\n: nothing\n\n";
        let events = Parser::default().push(heartbeat).unwrap();
        assert_eq!(events, [SentEvent { id: Some("a-9".into()), ..SentEvent::default() }]);
    }

    #[test]
    fn an_event_that_breaks_off_is_none() {
        let mut parser = Parser::default();
        assert_eq!(parser.push(b"id: 1\ndata: x\n"), Ok(vec![]));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(Parser::default().push(&[0xff, b'\n']), Err(Malformed));
        assert_eq!(Parser::default().push(&vec![b'x'; LINE_BYTES_MAX + 1]), Err(Malformed));
    }
}
