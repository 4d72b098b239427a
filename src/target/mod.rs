//! target (placeholder while the skeleton is being built).
