//! import (placeholder while the skeleton is being built).
