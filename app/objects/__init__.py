"""Object storage behind `ports.Objects`: local disks with our own durable writes, S3, GCS and ADLS through obstore.

Every file the catalog writes is written once under a new name; nothing here can overwrite.
"""

from app.objects.local import is_leftover
from app.objects.warehouse import WarehouseObjects

__all__ = ["WarehouseObjects", "is_leftover"]
