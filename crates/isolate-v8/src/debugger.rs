//! V8's inspector in one isolate, for one debugger's session.
//!
//! Invariant: it is used on the isolate's thread only and dropped before the isolate. While a script is paused its limits stand still;
//! a call that is stopped meanwhile, or a debugger that leaves, ends the pause.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use v8::inspector::{Channel, ChannelImpl, StringBuffer, StringView, V8Inspector, V8InspectorClient};
use v8::inspector::{V8InspectorClientImpl, V8InspectorClientTrustLevel, V8InspectorSession};

use crate::inspect::{InspectorHub, Port};
use crate::state;

/// The one group of contexts.
const GROUP: i32 = 1;
/// How often a pause looks whether its call was stopped.
const LOOK: Duration = Duration::from_millis(20);

thread_local! {
    /// The debugger of the isolate on this thread.
    static DEBUGGER: RefCell<Option<Rc<Debugger>>> = const { RefCell::new(None) };
}

/// A debugger's session in an isolate.
struct Debugger {
    session: V8InspectorSession,
    inspector: V8Inspector,
    port: Arc<Port>,
    quiet: Rc<Cell<bool>>,
}

/// Keeps a debugger for as long as its isolate lives.
pub(crate) struct Attached {
    number: u64,
    port: Arc<Port>,
}

struct Outlet {
    port: Arc<Port>,
    /// Answers to what is only repeated are nobody's.
    quiet: Rc<Cell<bool>>,
}

impl Outlet {
    fn tell(&self, message: &v8::UniquePtr<StringBuffer>) {
        if let Some(message) = message.as_ref() {
            self.port.tell(message.string().to_string());
        }
    }
}

impl ChannelImpl for Outlet {
    fn send_response(&self, _call_id: i32, message: v8::UniquePtr<StringBuffer>) {
        if !self.quiet.get() {
            self.tell(&message);
        }
    }

    fn send_notification(&self, message: v8::UniquePtr<StringBuffer>) {
        self.tell(&message);
    }

    fn flush_protocol_notifications(&self) {}
}

struct Client {
    hub: Arc<InspectorHub>,
    port: Arc<Port>,
    is_paused: Cell<bool>,
}

impl V8InspectorClientImpl for Client {
    fn run_message_loop_on_pause(&self, _context_group_id: i32) {
        let control = state::control();
        if let Some(control) = &control {
            control.pause_begins();
        }
        self.is_paused.set(true);
        while self.is_paused.get() {
            look();
            let is_stopped = control.as_ref().is_some_and(|control| control.is_killed());
            if self.is_paused.get() && (is_stopped || self.port.session().is_none()) {
                dispatch(r#"{"id":0,"method":"Debugger.setBreakpointsActive","params":{"active":false}}"#);
                dispatch(r#"{"id":0,"method":"Debugger.resume"}"#);
                break;
            }
            if self.is_paused.get() {
                self.port.wait(LOOK);
            }
        }
        if let Some(control) = &control {
            control.pause_ends();
        }
    }

    fn quit_message_loop_on_pause(&self) {
        self.is_paused.set(false);
    }

    fn resource_name_to_url(&self, resource_name: &StringView<'_>) -> Option<v8::UniquePtr<StringBuffer>> {
        let url = self.hub.url_of(&resource_name.to_string());
        Some(with_view(&url, StringBuffer::create))
    }
}

/// Text as V8 takes it: bytes are Latin-1 there.
fn with_view<T>(text: &str, then: impl FnOnce(StringView<'_>) -> T) -> T {
    if text.is_ascii() {
        return then(StringView::from(text.as_bytes()));
    }
    let units: Vec<u16> = text.encode_utf16().collect();
    then(StringView::from(units.as_slice()))
}

impl Attached {
    /// Begins the session that waits at the port, if one does, in this isolate.
    pub(crate) fn begin(isolate: &mut v8::Isolate, hub: &Arc<InspectorHub>, port: &Arc<Port>) -> Option<Self> {
        let number = port.session()?;
        let client = Client { hub: Arc::clone(hub), port: Arc::clone(port), is_paused: Cell::new(false) };
        let inspector = V8Inspector::create(isolate, V8InspectorClient::new(Box::new(client)));
        let quiet = Rc::new(Cell::new(false));
        let channel = Channel::new(Box::new(Outlet { port: Arc::clone(port), quiet: Rc::clone(&quiet) }));
        let session = inspector.connect(GROUP, channel, StringView::empty(), V8InspectorClientTrustLevel::FullyTrusted);
        let debugger = Rc::new(Debugger { session, inspector, port: Arc::clone(port), quiet });
        DEBUGGER.set(Some(Rc::clone(&debugger)));
        debugger.quiet.set(true);
        port.setup().iter().for_each(|message| dispatch(message));
        debugger.quiet.set(false);
        let handle = isolate.thread_safe_handle();
        port.set_interrupt(Some(Box::new(move || {
            handle.request_interrupt(interrupted, std::ptr::null_mut());
        })));
        Some(Self { number, port: Arc::clone(port) })
    }

    /// Whether it is still the session that the port has.
    pub(crate) fn is_current(&self) -> bool {
        self.port.session() == Some(self.number)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.port.set_interrupt(None);
        drop(DEBUGGER.take());
    }
}

unsafe extern "C" fn interrupted(_isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
    look();
}

/// Gives V8 what the debugger of this thread has sent.
pub(crate) fn look() {
    let Some(port) = DEBUGGER.with_borrow(|debugger| debugger.as_ref().map(|debugger| Arc::clone(&debugger.port))) else {
        return;
    };
    while let Some(message) = port.next() {
        dispatch(&message);
    }
}

fn dispatch(message: &str) {
    // Not borrowed meanwhile: a message may begin or end a pause, which comes back here.
    if let Some(debugger) = DEBUGGER.with_borrow(Clone::clone) {
        with_view(message, |message| debugger.session.dispatch_protocol_message(message));
    }
}

/// Tells the debugger of this thread that a script runs in this context, for as long as the result lives.
pub(crate) fn announce(isolate: &mut v8::Isolate, context: &v8::Global<v8::Context>, name: &str) {
    let Some(debugger) = DEBUGGER.with_borrow(Clone::clone) else { return };
    v8::scope!(let scope, isolate);
    let context = v8::Local::new(scope, context);
    let aux = StringView::from(&br#"{"isDefault":true}"#[..]);
    with_view(name, |name| debugger.inspector.context_created(context, GROUP, name, aux));
}

/// The script has ended.
pub(crate) fn withdraw(isolate: &mut v8::Isolate, context: &v8::Global<v8::Context>) {
    let Some(debugger) = DEBUGGER.with_borrow(Clone::clone) else { return };
    v8::scope!(let scope, isolate);
    let context = v8::Local::new(scope, context);
    debugger.inspector.context_destroyed(context);
}
