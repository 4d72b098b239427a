//! The structures of linux/aio_abi.h, little endian, and its commands.

/// `struct iocb`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Iocb {
    pub(super) data: u64,
    pub(super) key: u32,
    pub(super) rw_flags: i32,
    pub(super) opcode: u16,
    pub(super) priority: i16,
    pub(super) file: u32,
    pub(super) buffer: u64,
    pub(super) length: u64,
    pub(super) offset: i64,
    pub(super) reserved: u64,
    pub(super) flags: u32,
    pub(super) event_file: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct IoEvent {
    pub(super) data: u64,
    pub(super) object: u64,
    pub(super) result: i64,
    pub(super) result2: i64,
}

pub(super) const IOCB_CMD_PREAD: u16 = 0;
pub(super) const IOCB_CMD_PWRITE: u16 = 1;
pub(super) const IOCB_CMD_POLL: u16 = 5;
